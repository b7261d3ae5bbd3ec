"""One small colony is the same in every format, and files that are no tracks are refused."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.train.durotaxis.tracks import track_files
from train.durotaxis.tracks.files import formats, trackmate


def is_the_colony(tracks) -> bool:
    """Whether tracks are those of `track_files`, whatever the order of the cells."""
    x, y = tracks.places
    cells = {
        (round(x[c], 6), round(y[c], 6)): (tracks.first[c], tracks.last[c], tracks.parent[c])
        for c in range(len(x))
    }
    mother = next(c for c in range(len(x)) if round(x[c], 6) == 10)
    expected = {(10, 20): (0, 4, -1), (14, 20): (2, 3, mother), (40, 30): (0, 4, -1)}
    return cells == expected and (tracks.num_births, tracks.num_deaths, tracks.frames) == (1, 1, 5)


def test_a_row_for_each_cell_and_frame(tmp_path):
    path = tmp_path / "tracks.csv"
    path.write_text(track_files.OWN)
    tracks = formats.read(str(path))
    assert is_the_colony(tracks)
    assert "3 cells in 5 frames, 1 birth, 1 death" in tracks.notes[0]
    separated = track_files.OWN.replace(",", ";").replace("frame", "Frame")
    path.write_text("\ufeff" + separated)
    assert is_the_colony(formats.read(str(path)))
    path.write_text(track_files.OWN.replace("x,y", "x_um,y_um"))
    halved = formats.read(str(path), pixel_size=2.0)
    np.testing.assert_allclose(2 * halved.x, tracks.x)


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ((), []),
        (("3,3,",), ["1 of 12 detections is missing between the first and last frame of their c"]),
        (("1,1,", "2,3,"), ["2 of 12 detections are missing between the first and last frame of"]),
        (("1,",), ["2 of 12 detections are missing", "1 of 5 frames between the first and the l"]),
        (("4,",), []),
    ],
)
def test_missing_detections_are_counted(tmp_path, lost, expected):
    rows = [row for row in track_files.OWN.splitlines() if not row.startswith(lost)]
    (tmp_path / "tracks.csv").write_text("\n".join(rows))
    notes = formats.read(str(tmp_path / "tracks.csv")).notes[1:]
    assert [note[: len(text)] for note, text in zip(notes, expected, strict=True)] == expected


def test_frames_that_are_numbered_by_two_are_steps(tmp_path):
    head, *rows = track_files.OWN.splitlines()
    doubled = [f"{2 * int(row[0]) + 6}{row[1:]}" for row in rows]
    (tmp_path / "tracks.csv").write_text("\n".join([head, *doubled]))
    tracks = formats.read(str(tmp_path / "tracks.csv"))
    assert is_the_colony(tracks)
    assert "a step is 2 of them" in tracks.notes[1]


@pytest.mark.parametrize(
    "pair",
    [
        ("1_1", "11"),
        ("00", "0"),
        ("01", "1"),
        ("1E2", "100"),
        ("1" + "0" * 19, "1" + "0" * 18 + "1"),
    ],
)
def test_cells_whose_names_read_as_the_same_number_are_two(tmp_path, pair):
    rows = [f"{frame},{pair[frame > 1]},,{10 + 8 * (frame > 1)},20" for frame in range(5)]
    (tmp_path / "tracks.csv").write_text("\n".join(["frame,cell,parent,x,y", *rows]))
    tracks = formats.read(str(tmp_path / "tracks.csv"))
    assert (len(tracks.parent), tracks.num_deaths) == (2, 1)


@pytest.mark.parametrize("form", ["{}.0", "{}.00", "{:.18e}"])
def test_cells_may_be_numbered_by_floats(tmp_path, form):
    """Spreadsheets, pandas and numpy.savetxt write floats; -1 is no parent."""
    head, *rows = [row.split(",") for row in track_files.OWN.splitlines()]
    floats = [
        [frame, form.format(int(cell)), form.format(int(parent or -1)), *place]
        for frame, cell, parent, *place in rows
    ]
    (tmp_path / "tracks.csv").write_text("\n".join(map(",".join, [head, *floats])))
    assert is_the_colony(formats.read(str(tmp_path / "tracks.csv")))


def test_frames_may_be_negative(tmp_path):
    head, *rows = track_files.OWN.splitlines()
    earlier = [f"{int(row[0]) - 9}{row[1:]}" for row in rows]
    (tmp_path / "tracks.csv").write_text("\n".join([head, *earlier]))
    tracks = formats.read(str(tmp_path / "tracks.csv"))
    assert is_the_colony(tracks)
    assert len(tracks.notes) == 1  # no detections are missing


def test_spots_of_trackmate(tmp_path):
    spots, edges = track_files.write_spots(tmp_path)
    tracks = formats.read(spots, edges, pixel_size=0.5)
    assert is_the_colony(tracks)
    assert tracks.notes[0].split(": ")[1].startswith("spots of TrackMate, places in µm")
    assert "1 spot in no track left out" in tracks.notes
    with pytest.raises(ValueError, match="two spots of track 0 in frame 2, so cells divide"):
        formats.read(spots, "", 0.5)
    with pytest.raises(ValueError, match="places in µm; say how many µm"):
        formats.read(spots, edges)


def test_spots_may_be_numbered_by_floats(tmp_path):
    """Spreadsheets and pandas write floats, with and without TrackMate's rows of names."""
    spots, edges = map(Path, track_files.write_spots(tmp_path, dropped=0))
    text = re.sub(r"^(ID\d+,\d+),(\d+)", r"\1.0,\2.0", spots.read_text(), flags=re.MULTILINE)
    links = re.sub(r",(\d+),(\d+)$", r",\1.0,\2.0", edges.read_text(), flags=re.MULTILINE)
    for headings in (1, 4):
        for path, rows in ((spots, text.splitlines()), (edges, links.splitlines())):
            path.write_text("\n".join(rows[:headings] + rows[4:]))
        scale = 0.5 if headings == 4 else None
        tracks = formats.read(str(spots), str(edges), scale)
        assert (tracks.num_births, tracks.num_deaths, len(tracks.parent)) == (1, 1, 3)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("202,203\n302,", "edges.csv has '' in column SPOT_TARGET_ID; expected the number of a s"),
        ("202,203\nID302,303", "has 'ID302' in column SPOT_SOURCE_ID; expected the number of a s"),
        ("202.5,203", "has '202.5' in column SPOT_SOURCE_ID; expected the number"),
        ("Source,Target\n,", "edges.csv has no edges; expected TrackMate's table of edges"),
        ("202,203\n302,202", "links the spots 302 and 202, both in frame 2; expected links from"),
    ],
)
def test_edges_that_link_no_spots_are_refused(tmp_path, links, message):
    spots, edges = track_files.write_spots(tmp_path)
    Path(edges).write_text(f"SPOT_SOURCE_ID,SPOT_TARGET_ID\n{links}\n")
    with pytest.raises(ValueError, match=message):
        formats.read(spots, edges, 0.5)


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ({304}, "edges.csv has no edge of 1 spot of 1 track of several spots; expected the edges"),
        ({301, 302, 303, 304}, "edges.csv has no edge of 5 spots of 1 track of several spots"),
        ({202, 203, 304}, "edges.csv has no edge of 3 spots of 2 tracks of several spots"),
    ],
)
def test_edges_of_a_part_of_the_spots_are_refused(tmp_path, lost, message):
    """Cells of one frame would be made of the others."""
    spots, edges = track_files.write_spots(tmp_path)
    links = [f"{a},{b}" for a, b in track_files.EDGES if b not in lost]
    Path(edges).write_text("\n".join(["SPOT_SOURCE_ID,SPOT_TARGET_ID", *links]))
    with pytest.raises(ValueError, match=message) as refused:
        formats.read(spots, edges, 0.5)
    assert "\n" not in str(refused.value)


def test_links_may_be_repeated_and_spots_not(tmp_path):
    """Tables of two exports that were joined repeat both."""
    spots, edges = map(Path, track_files.write_spots(tmp_path))
    edges.write_text(edges.read_text() + "x,0,202,203\nx,0,203,202\n")
    assert is_the_colony(formats.read(str(spots), str(edges), 0.5))
    spots.write_text(spots.read_text() + "ID203,203,0,1,7,10,4\n")
    with pytest.raises(ValueError, match=r"spots\.csv has 2 rows of spot 203; expected one"):
        formats.read(str(spots), str(edges), 0.5)


def test_columns_without_a_name_may_be_several(tmp_path):
    rows = [f",{row}," for row in track_files.OWN.splitlines()]
    (tmp_path / "tracks.csv").write_text("\n".join(rows))
    assert is_the_colony(formats.read(str(tmp_path / "tracks.csv")))


def test_lineages_with_label_images(tmp_path):
    tracks = formats.read(track_files.write_label_images(tmp_path))
    assert is_the_colony(tracks)
    assert "1 mother that ended at a division lives on" in tracks.notes[1]


@pytest.mark.parametrize(("images", "frames"), [((5,), 6), ((5, 6), 7), ((6,), 7)])
def test_label_images_without_labels_at_the_end_are_frames(tmp_path, images, frames):
    path = track_files.write_label_images(tmp_path)
    for frame in images:
        Image.new("I;16", (60, 50)).save(tmp_path / f"man_track{frame:03}.tif")
    tracks = formats.read(path)
    assert (tracks.frames, tracks.num_births, tracks.num_deaths) == (frames, 1, 3)
    assert f"{frames - 5} of {frames} frames" in tracks.notes[-1]


def test_label_images_of_cells_in_every_other_frame_are_steps_of_two(tmp_path):
    path = Path(track_files.write_label_images(tmp_path))
    path.write_text("1 0 2 0\n2 4 6 1\n3 0 8 0\n4 4 8 1\n")
    for frame in (4, 3, 2, 1):  # those of two frames on have moved already
        (tmp_path / f"man_track{frame:03}.tif").rename(tmp_path / f"man_track{2 * frame:03}.tif")
    for frame, more in ((1, 0), (3, 0), (5, 0), (7, 0), (9, 0), (10, 2)):
        Image.new("I;16", (60, 50)).save(tmp_path / f"man_track{frame:03}.tif")
        tracks = formats.read(str(path))
        assert (tracks.frames, tracks.num_deaths) == (5 + more // 2, 1 + more)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3 0 4 0\n", "", "has no track 3, which the label image of frame 0 shows: add its row"),
        ("2 2 3 1", "2 2 2 1", "track 2 in frames 2 to 2, but the label image of frame 3 shows it"),
        ("4 2 4 1", "4 2 4 1\n5 0 1 0", "has track 5, which no label image beside it shows"),
    ],
)
def test_label_images_of_other_tracks_are_refused(tmp_path, old, new, message):
    path = Path(track_files.write_label_images(tmp_path))
    path.write_text(track_files.LINEAGE.replace(old, new))
    with pytest.raises(ValueError, match=message):
        formats.read(str(path))


def test_lineages_with_places(tmp_path):
    rows = zip(track_files.LINEAGE.splitlines(), ("10 20", "14 20", "40 30", "10 20"), strict=True)
    (tmp_path / "man_track.txt").write_text("\n".join(" ".join(row) for row in rows))
    tracks = formats.read(str(tmp_path / "man_track.txt"))
    assert is_the_colony(tracks)
    assert not any("missing" in note for note in tracks.notes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("parent", "mother", "has no column parent"),
        ("3,2,1,14,20", "3,2,1,nan,20", "1 row whose x is no finite number, the first of cell 2"),
        ("3,2,1,14,20", "3,2,1,14", "has 4 values in its row 9; expected 5"),
        ("3,2,1,14,20", "3,2,1,14,2O", "has '2O' in column y, row 9; expected a number"),
        ("3,2,1,14,20", "3,2,1,1_4,20", "has '1_4' in column x, row 9; expected a number"),
        ("3,2,1,14,20", "#N/A,2,1,14,20", "has '#N/A' in column frame, row 9; expected a number"),
        ("3,2,1,14,20", "3,,1,14,20", "has no cell in row 9; expected its name: leave such rows"),
        ("3,2,1,14,20", "2,2,1,14,20", "has cell 2 2 times in frame 2"),
        ("2,2,1,14,20", "2,2,7,14,20", "cell 2 has the parents 7 and 1"),
        (",2,1,", ",2,7,", "the parent of cell 2 is 7, which has no rows"),
        ("0,3,,", "0,3,2,", "cell 3 appears in frame 0, but its parent 2 in frame 2"),
        ("3,2,1,14,20", "3.5,2,1,14,20", "frames that are no whole numbers"),
        ("parent,x,y", "x,x,y", "has 2 columns called 'x', in capitals or not; expected one: ren"),
        ("parent,x,y", "X,x,y", "has 2 columns called 'x', in capitals or not"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path, old, new, message):
    path = tmp_path / "tracks.csv"
    path.write_text(track_files.OWN.replace(old, new))
    with pytest.raises(ValueError, match=r"tracks\.csv") as error:
        formats.read(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no table of text"),
        ("frame,cell,parent,x,y\n", "has no cells"),
        ("frame,cell,parent,x,y\n3,1,,1,1\n3,2,,5,5\n", "has one frame only"),
        ("1 2 3\n4 5 6\n", "has 3 columns without names"),
        ("1 0 4 0\n2 2 1 1\n", "track 2 ends before it begins"),
        ("1 0 4 0\n2 2 3 1\n", "no label images"),
        ('<?xml version="1.0"?>\n<Tracks/>', "is XML and no table: export CSV; expected columns"),
        ("<TrackMate/>", "export CSV, as TrackMate's buttons Spots and Edges do; expected columns"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path, text, message):
    (tmp_path / "tracks.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        formats.read(str(tmp_path / "tracks.csv"))


def test_merges_and_unknown_spots_are_refused(tmp_path):
    spots, _ = track_files.write_spots(tmp_path)
    for link, message in (("302,203", "1 merge of two cells"), ("7,302", "links spot 7")):
        (tmp_path / "other.csv").write_text(
            "SPOT_SOURCE_ID,SPOT_TARGET_ID\n202,203\n" + link + "\n"
        )
        with pytest.raises(ValueError, match=message):
            formats.read(spots, str(tmp_path / "other.csv"), 0.5)
    assert trackmate.unit_of("", {"POSITION_X": ["X", "X", "(pixel)"]}) == "px"
    with pytest.raises(ValueError, match="places in inch"):
        trackmate.unit_of("", {"POSITION_X": ["(inch)"]})


def test_a_place_of_a_spot_that_is_no_number_is_named_with_its_row(tmp_path):
    """Counted below the names, rows of units and spots in no track included."""
    table = tmp_path / "spots.csv"
    table.write_text(
        "ID,TRACK_ID,FRAME,POSITION_X,POSITION_Y\n,,,(pixel),(pixel)\n"
        "1,None,0,1,1\n2,0,0,3,3\n3,0,1,3,1_4\n"
    )
    message = r"has '1_4' in column POSITION_Y, row 4; expected a number with a decimal point"
    with pytest.raises(ValueError, match=message):
        formats.read(str(table))
