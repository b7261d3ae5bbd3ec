"""NumPy files: what NumPy wrote is read, and a header is believed only as far as it may be."""

import io
import zipfile

import numpy as np
import pytest

from train.host.files import array_files

RNG = np.random.default_rng(0)
ARRAYS = {
    "rows": RNG.normal(size=(3, 4)),
    "columns": np.asfortranarray(RNG.normal(size=(3, 4)).astype(np.float32)),
    "scalar": np.array(7),
    "empty": np.zeros((0, 3), np.int16),
    "big end first": np.arange(5, dtype=">i4"),
    "raster": RNG.random((4, 2)) > 0.5,
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back(tmp_path, save):
    save(tmp_path / "x.npz", **ARRAYS)
    arrays = array_files.read_npz(tmp_path / "x.npz", [*ARRAYS, "absent"])
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)
        np.save(tmp_path / "x.npy", array)
        np.testing.assert_array_equal(array_files.read_npy(tmp_path / "x.npy"), array, strict=True)


def header(shape: str, descr: str = "'<f8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header("(99999999, 99999999)"), "more than 2,147,483,648 bytes: cut it up"),
        (header("(10, 10)") + bytes(799), "is cut short"),
        (header("(-1, 10)"), "expected sizes of at least 0"),
        (header("(2,)", "'|O'") + bytes(16), "holds object"),
        (b"\x93NUMPY\x02\x00" + bytes([255] * 4), r"\w"),
        (b"", r"\w"),
        (b"no array at all", r"\w"),
    ],
)
def test_what_a_header_promises_is_not_believed(tmp_path, content, message):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        array_files.read_npy(tmp_path / "x.npy")
    assert "\n" not in str(error.value)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("y.npy", content)
    with pytest.raises(ValueError, match=message):
        array_files.read_npz(tmp_path / "x.npz", ["y"])


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([3.0, 1.0], ">f4"), [3, 1]),
        (np.array([True, False]), None),
        (np.array([200, 3], np.uint8), [200, 3]),
        (np.array([2**63 - 1], np.uint64), [2**63 - 1]),
        (np.zeros(0), []),
        (np.array([2**63], np.uint64), None),
        (np.array([1e30]), None),
        (np.array([0.5]), None),
        (np.array([1, np.nan]), None),
        (np.array([np.inf]), None),
    ],
)
def test_whole_numbers_of_any_kind(array, expected):
    numbers = array_files.to_integers(array)
    if expected is None:
        assert numbers is None
    else:
        np.testing.assert_array_equal(numbers, np.array(expected, np.int64), strict=True)


def test_axes_of_length_1():
    row = np.arange(3)
    for shape in ((3, 1), (1, 3), (3,)):
        np.testing.assert_array_equal(array_files.to_vector(row.reshape(shape)), row)
        np.testing.assert_array_equal(
            array_files.reshape_unit_axes(row.reshape(shape), (1, 3)), row[None]
        )
    assert array_files.to_vector(np.eye(2)).shape == (2, 2)
    assert array_files.reshape_unit_axes(np.zeros((2, 3)), (6,)) is None


def test_a_zip_bomb_is_refused_by_its_header(tmp_path):
    """Three gibibytes of zeros in some megabytes: nothing is inflated."""
    size = 3 * 2**30 // 8
    with (
        zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("y.npy", "w", force_zip64=True) as file,
    ):
        file.write(header(f"({size},)"))
        file.write(bytes(10_000_000))  # the rest would be alike
    with pytest.raises(ValueError, match="more than 2,147,483,648 bytes"):
        array_files.read_npz(tmp_path / "x.npz", ["y"])


def test_a_damaged_archive(tmp_path):
    file = io.BytesIO()
    np.savez_compressed(file, y=np.ones(1000))
    content = bytearray(file.getvalue())
    content[60:80] = bytes(20)
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        array_files.read_npz(tmp_path / "x.npz", ["y"])
    with pytest.raises(FileNotFoundError):
        array_files.read_npz(tmp_path / "absent.npz", ["y"])
