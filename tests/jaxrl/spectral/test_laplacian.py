"""The ground truth against closed forms, printed spectra, matrix powers and scipy's own solver."""

import numpy as np
import pytest
import scipy.linalg

from jaxrl.spectral import laplacian

Cell = tuple[int, int]


def walk(cells: list[Cell]) -> np.ndarray:
    """Uniform moves up, right, down, left; one that leaves the cells stays where it is."""
    index = {cell: i for i, cell in enumerate(sorted(cells))}
    P = np.zeros((len(index), len(index)))
    for (row, col), i in index.items():
        for down, right in ((-1, 0), (0, 1), (1, 0), (0, -1)):
            P[i, index.get((row + down, col + right), i)] += 0.25
    return P


def block(rows: range, cols: range) -> set[Cell]:
    return {(row, col) for row in rows for col in cols}


INSIDE = range(1, 12)
CROSS = block(range(6, 7), INSIDE) | block(INSIDE, range(6, 7))
BEND = (
    block(range(6, 7), INSIDE) | block(range(1, 6), range(6, 7)) | block(range(7, 12), range(7, 8))
)
OPENINGS_16 = {
    *((2, 5), (7, 5), (18, 5), (3, 10), (8, 10), (13, 10), (17, 10), (2, 15), (18, 15)),
    *((5, 18), (10, 3), (10, 13), (10, 17), (15, 2), (15, 18)),
}
MAZES = {
    "GridMaze-7": block(range(3, 4), range(1, 8)) | block(range(1, 6), range(7, 8)),
    "GridMaze-9": block(range(4, 5), range(1, 8)) | block(range(1, 8), range(7, 8)),
    "GridMaze-11": block(range(5, 6), range(1, 10)) | block(range(1, 10), range(5, 6)),
    "GridMaze-17": block(range(1), range(87)),  # a path however it is folded
    "GridRoom-1": block(range(15), range(15)),
    "GridRoom-4": block(INSIDE, INSIDE) - BEND | {(2, 6), (6, 3), (6, 10), (9, 7)},
    "GridRoomSym-4": block(INSIDE, INSIDE) - CROSS | {(3, 6), (9, 6), (6, 3), (6, 9)},
    "GridRoom-16": {(r, c) for r in range(1, 20) for c in range(1, 20) if r % 5 and c % 5}
    | OPENINGS_16,
}
# λ of components 2 to 11 at g = 0.9, in the convention k >= 0, as printed.
SPECTRA = {
    "GridMaze-7": (11, ".1833 .4622 .5208 .7148 .7958 .8392 .8549 .8739 .8934 .9091"),
    "GridMaze-9": (13, ".1582 .3083 .4899 .6613 .7529 .7777 .8266 .8613 .8768 .8796"),
    "GridMaze-11": (17, ".2135 .2135 .2135 .5411 .6923 .6923 .6923 .8057 .8408 .8408"),
    "GridMaze-17": (87, ".0029 .0116 .0257 .0448 .0682 .0952 .1251 .1572 .1907 .2249"),
    "GridRoom-1": (225, ".0895 .0895 .1643 .2801 .2801 .3277 .3277 .4376 .4622 .4622"),
    "GridRoom-4": (104, ".0490 .0576 .1122 .3905 .4420 .4531 .4585 .4787 .4917 .5209"),
    "GridRoomSym-4": (104, ".0540 .0540 .1068 .4502 .4507 .4507 .4512 .4915 .4951 .4951"),
    "GridRoom-16": (271, ".0016 .0063 .0139 .0242 .0367 .0511 .0663 .0832 .1007 .1161"),
}


def maze(name: str) -> np.ndarray:
    return walk(list(MAZES[name]))


def spectrum(P: np.ndarray) -> np.ndarray:
    """μ of a symmetric P, descending, 1 first."""
    return np.linalg.eigvalsh(P)[::-1]


def one_way_chain() -> np.ndarray:
    """Five states that are neither reversible nor equally likely."""
    P = np.random.default_rng(1).random((5, 5)) * (np.arange(5)[:, None] <= np.arange(5)[None] + 1)
    return P / P.sum(axis=1, keepdims=True)


def pairs_by_powers(P, start, steps, discount) -> np.ndarray:
    """Every beginning and every offset, one after the other."""
    M = np.zeros_like(P)
    for t in range(steps):
        n = steps - t
        shares = [discount ** (k - 1) for k in range(1, n + 1)]
        at_t = start @ np.linalg.matrix_power(P, t)
        for k, share in enumerate(shares, start=1):
            power = np.linalg.matrix_power(P, k)
            M += np.diag(at_t) @ power * share / sum(shares) / steps
    return M


def energy(M: np.ndarray) -> np.ndarray:
    """The matrix of ½ Σ M (u(s) - u(s'))², summed pair by pair."""
    A = np.zeros_like(M)
    for s, t in np.ndindex(*M.shape):
        edge = np.eye(len(M))[s] - np.eye(len(M))[t]
        A += 0.5 * M[s, t] * np.outer(edge, edge)
    return A


# --- from μ to λ and back


@pytest.mark.parametrize("name", MAZES)
def test_printed_spectra_to_four_digits(name):
    size, printed = SPECTRA[name]
    P = maze(name)
    assert len(P) == size
    values = laplacian.published_eigensystem(P, 0.9).values
    np.testing.assert_allclose(values[0], 0, atol=1e-12)
    assert " ".join(f"{value:.4f}"[1:] for value in values[1:11]) == printed


def test_printed_spectrum_without_zeroth_offset():
    values = laplacian.lambda_of_mu(spectrum(maze("GridRoom-4"))[:11], 0.2)
    printed = [0, 0.0071, 0.0085, 0.0175, 0.0874, 0.1076, 0.1125, 0.1149, 0.1244, 0.1308, 0.1466]
    np.testing.assert_allclose(values, printed, atol=5.1e-5)


def test_closed_forms_of_the_path_and_the_open_room():
    path = (1 + np.cos(np.arange(87) * np.pi / 87)) / 2
    np.testing.assert_allclose(spectrum(maze("GridMaze-17")), path, atol=1e-12)
    side = np.cos(np.arange(15) * np.pi / 15)
    room = np.sort((side[:, None] + side[None]).ravel() / 2)[::-1]
    np.testing.assert_allclose(spectrum(maze("GridRoom-1")), room, atol=1e-12)


@pytest.mark.parametrize("discount", [0.2, 0.9])
def test_both_conventions_are_those_of_the_operators(discount):
    P, eye = maze("GridMaze-9"), np.eye(13)
    resolvent = (1 - discount) * np.linalg.inv(eye - discount * P)
    for operator, convert in (
        (eye - resolvent, laplacian.successor_lambda),
        (eye - resolvent @ P, laplacian.lambda_of_mu),
    ):
        np.testing.assert_allclose(
            np.linalg.eigvalsh((operator + operator.T) / 2),
            convert(spectrum(P), discount),
            atol=1e-12,
        )
    np.testing.assert_allclose(eye - resolvent, discount * (eye - resolvent @ P), atol=1e-12)


@pytest.mark.parametrize("discount", [0.0, 0.2, 0.9, 1.0])
@pytest.mark.parametrize("horizon", [2, 3, 51])
def test_horizon_lambda_is_the_mean_over_starts_and_offsets(discount, horizon):
    for mu in (1.0, 0.97, 0.3, 0.0, -0.8, -1.0):
        mean = 0.0
        for n in range(1, horizon):
            shares = [discount**j for j in range(n)]
            moment = sum(share * mu ** (j + 1) for j, share in enumerate(shares))
            mean += moment / sum(shares) / (horizon - 1)
        value = laplacian.horizon_lambda(mu, discount, horizon)
        np.testing.assert_allclose(value, 1 - mean, atol=1e-13)
    assert laplacian.horizon_lambda(1.0, discount, horizon) == 0


def test_horizon_lambda_approaches_and_misses_the_endless_one_as_published():
    mu = np.array([0.99, 0.5, -0.5])
    endless = laplacian.lambda_of_mu(mu, 0.2)
    np.testing.assert_allclose(laplacian.horizon_lambda(mu, 0.2, 1001), endless, rtol=5e-3)
    slow = 1 - 1e-7
    share = laplacian.horizon_lambda(slow, 0.9, 51) / laplacian.lambda_of_mu(slow, 0.9)
    np.testing.assert_allclose([share, share / 0.9], [0.72, 0.80], atol=0.005)  # 28 %, 20 % below


# --- the law of pairs, and what it teaches


@pytest.mark.parametrize("discount", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_sampled_pairs_by_matrix_powers(discount, steps):
    corridor = walk([(0, col) for col in range(40)])  # nearly all of its entries are 0
    for P, start in (
        (one_way_chain(), np.array([0.5, 0.2, 0.0, 0.3, 0.0])),
        (corridor, np.arange(40) / 780),
    ):
        M = laplacian.sampled_pairs(P, start, steps, discount)
        np.testing.assert_allclose(M, pairs_by_powers(P, start, steps, discount), atol=1e-14)
        np.testing.assert_allclose(M.sum(), 1, atol=1e-14)


def test_a_thousand_steps_leave_out_nothing_that_counts():
    P = maze("GridMaze-7")
    M = laplacian.sampled_pairs(P, np.full(11, 1 / 11), 1000, 0.2)
    np.testing.assert_allclose(M.sum(), 1, atol=1e-12)
    expected = laplacian.horizon_lambda(spectrum(P), 0.2, 1001)
    np.testing.assert_allclose(laplacian.eigensystem(M).values, expected, atol=1e-12)


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_a_symmetric_walk_from_anywhere_has_the_horizon_spectrum(discount):
    P = maze("GridMaze-9")
    eigensystem = laplacian.eigensystem(
        laplacian.sampled_pairs(P, np.full(13, 1 / 13), 50, discount)
    )
    expected = np.sort(laplacian.horizon_lambda(spectrum(P), discount, 51))
    np.testing.assert_allclose(eigensystem.values, expected, atol=1e-12)
    # They are eigenvectors of P itself, too.
    for column, value in ((1, eigensystem.values[1]), (5, eigensystem.values[5])):
        u = eigensystem.vectors[:, column]
        mu = u @ P @ u / (u @ u)
        np.testing.assert_allclose(P @ u, mu * u, atol=1e-8)
        np.testing.assert_allclose(laplacian.horizon_lambda(mu, discount, 51), value, atol=1e-12)


def test_a_one_way_chain_has_the_spectrum_of_its_loss():
    M = laplacian.sampled_pairs(one_way_chain(), np.full(5, 0.2), 6, 0.7)
    eigensystem = laplacian.eigensystem(3 * M)  # counts will do
    values, vectors = scipy.linalg.eigh(energy(M), np.diag(M.sum(axis=1)))
    np.testing.assert_allclose(eigensystem.values, values, atol=1e-13)
    np.testing.assert_allclose(np.abs(eigensystem.vectors), np.abs(vectors), atol=1e-10)
    np.testing.assert_allclose(eigensystem.weight, M.sum(axis=1), atol=1e-15)
    gram = eigensystem.vectors.T @ np.diag(eigensystem.weight) @ eigensystem.vectors
    np.testing.assert_allclose(gram, np.eye(5), atol=1e-12)


def test_dropped_states():
    M = np.zeros((6, 6))
    rng = np.random.default_rng(2)
    M[:3, :3], M[:3, 4] = rng.random((3, 3)), rng.random(3)  # 3, 5 never seen; 4 only ends pairs
    M = M[:, [3, 0, 1, 4, 2, 5]][[3, 0, 1, 4, 2, 5]]
    eigensystem = laplacian.eigensystem(M, missing="drop")
    start_states = np.array([1, 2, 4])
    assert eigensystem.values.shape == (3,)
    assert eigensystem.vectors.shape == (6, 3)
    np.testing.assert_array_equal(eigensystem.weight > 0, np.isin(np.arange(6), start_states))
    np.testing.assert_array_equal(eigensystem.vectors[eigensystem.weight == 0], 0)
    # The same problem with next to no constraint on the state that only ends pairs.
    ends = np.array([*start_states, 3])
    M = M[np.ix_(ends, ends)] / M.sum()
    near, vectors = scipy.linalg.eigh(energy(M), np.diag(np.maximum(M.sum(axis=1), 1e-9)))
    np.testing.assert_allclose(eigensystem.values, near[:3], atol=1e-7)
    np.testing.assert_allclose(
        np.abs(eigensystem.vectors[start_states]), np.abs(vectors[:3, :3]), atol=1e-6
    )


def test_signs_do_not_hang_on_rounding():
    P = maze("GridMaze-17")
    first = laplacian.published_eigensystem(P, 0.9)
    turned = laplacian.published_eigensystem(P[::-1, ::-1], 0.9)
    k = np.arange(1, 11)[None]
    exact = np.sqrt(2) * np.cos((np.arange(87)[:, None] + 0.5) * k * np.pi / 87)
    np.testing.assert_allclose(first.vectors[:, 1:11], exact, atol=1e-9)
    np.testing.assert_allclose(turned.vectors[:, 1:11], exact, atol=1e-9)
    np.testing.assert_allclose(first.vectors[:, 0], 1, atol=1e-9)
    np.testing.assert_allclose(first.vectors.T @ first.vectors / 87, np.eye(87), atol=1e-12)


# --- groups


def test_groups_of_the_mazes():
    for name, sizes in (
        ("GridRoom-1", [1, 2, 1, 2, 2, 1, 2]),
        ("GridRoomSym-4", [1, 2, 1, 1, 2, 1, 1, 2]),
        ("GridMaze-11", [1, 3, 1, 3, 1, 3]),
        ("GridRoom-4", [1] * 11),
    ):
        ids = laplacian.groups(laplacian.published_eigensystem(maze(name), 0.9).values)
        expected = np.repeat(np.arange(len(sizes)), sizes)
        np.testing.assert_array_equal(ids[: len(expected)], expected)


def test_groups_chain_and_measure_by_the_larger_value():
    assert laplacian.groups([0, 1, 1.009, 1.018, 1.03], relative=0.01).tolist() == [0, 1, 1, 1, 2]
    assert laplacian.groups([1.0, 1.0101], relative=0.01).tolist() == [0, 0]
    assert laplacian.groups([0.0, 0.2, 0.5], absolute=0.25).tolist() == [0, 0, 1]
    assert laplacian.groups([]).tolist() == []


# --- bad input

HALF, LEFT = np.full((2, 2), 0.5), np.array([1.0, 0.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: laplacian.lambda_of_mu(0.5, 1.0), "discount is 1.0, expected 0 <= discount < 1"),
        (lambda: laplacian.horizon_lambda(0.5, 1.1, 5), "discount is 1.1, expected 0 to 1"),
        (lambda: laplacian.horizon_lambda(0.5, 0.9, 1), "0 transitions, expected at least 1"),
        (lambda: laplacian.sampled_pairs(HALF[:1], LEFT, 3, 0.9), "expected \\[S, S\\]"),
        (lambda: laplacian.sampled_pairs(2 * HALF, LEFT, 3, 0.9), "every row of P"),
        (lambda: laplacian.sampled_pairs(HALF, 2 * LEFT, 3, 0.9), "start must hold"),
        (lambda: laplacian.sampled_pairs(HALF, LEFT[:1], 3, 0.9), "start has shape \\(1,\\)"),
        (lambda: laplacian.sampled_pairs(HALF, np.nan * LEFT, 3, 0.9), "start must hold"),
        (lambda: laplacian.eigensystem(HALF * LEFT[:, None]), "1 of 2 states never begin a pair"),
        (lambda: laplacian.eigensystem(0 * HALF), "negative, not finite or all 0"),
        (lambda: laplacian.eigensystem(HALF, missing="keep"), "missing is 'keep'"),
        (
            lambda: laplacian.published_eigensystem(np.tril(HALF) + np.diag(LEFT / 2), 0.9),
            "transpose by up to 0.5",
        ),
        (lambda: laplacian.groups([1.0, 0.0]), "do not ascend"),
    ],
)
def test_bad_input_is_named_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
