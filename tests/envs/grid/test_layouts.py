"""Mazes from text: both formats, everything that is refused, and the parts of a maze."""

import numpy as np
import pytest

from envs.grid import layouts
from envs.grid.layouts import Door, Layout, Portal

PLAIN = """
#####
#S.G#
#.#.#
#####
"""


def test_plain_text():
    layout = layouts.parse(PLAIN, "small")
    assert (layout.name, layout.height, layout.width, layout.num_states) == ("small", 4, 5, 5)
    assert layout.cells.tolist() == [[1, 1], [1, 2], [1, 3], [2, 1], [2, 3]]
    assert layout.index.tolist() == [[-1] * 5, [-1, 0, 1, 2, -1], [-1, 3, -1, 4, -1], [-1] * 5]
    assert (layout.cells.dtype, layout.index.dtype, layout.free.dtype) == (np.int32, np.int32, bool)
    assert (layout.starts, layout.goals) == (((1, 1),), ((1, 3),))
    expected = [[tile != "#" for tile in row] for row in PLAIN.split()]
    assert layout.free.tolist() == expected
    assert repr(layout) == "Layout('small', 4x5, 5 states)"


@pytest.mark.parametrize(
    "text",
    [
        "xx\n. ",
        "XX\r\n. \r\n",
        "XX\r. \r",  # as old Macs, and some spreadsheets, write lines
        "\n\n##\n. \n\n   \n",
        "##\n..",
        "#,X\n ,.\n",
        "x,#\r\n., .\r\n",
        "x,#\r., .\r",
    ],
)
def test_spellings_of_one_maze(text):
    layout = layouts.parse(text)
    assert layout.free.tolist() == [[False, False], [True, True]]
    assert layout.start_states.tolist() == [0, 1]


def test_a_row_of_blanks_inside_is_free():
    assert layouts.parse(".#.\n   \n.#.").num_states == 7


def test_doors_and_portals():
    text = "X,X,X,X,X\nX,S,DRL:0.25,E1G,X\nX, ,#,.,X\nX,PL:1@3_b2PD:1DU, ,Eb2,X\nX,X,X,X,X\n"
    layout = layouts.parse(text)
    assert layout.starts == ((1, 1),)
    assert layout.goals == ((1, 3),)
    assert layout.doors == (
        Door((1, 2), 1, 0.25),
        Door((1, 2), 3, 0.25),
        Door((3, 1), 0, 0.0),
    )
    assert layout.portals == (
        Portal((3, 1), 3, (((1, 3), 0.75), ((3, 3), 0.25))),
        Portal((3, 1), 2, (((1, 3), 1.0),)),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the maze is empty; expected rows of tiles"),
        (" \n\n", "the maze is empty"),
        ("###\n#.\n###", r"line 2 has 2 tiles; expected 3 .*write '\.' for free"),
        ("..\n..\n...", "line 3 has 3 tiles; expected 2"),
        ("...\n\n...", "line 2 has 0 tiles; expected 3"),
        ("..\n..\n  \n", "line 3 is as wide as the maze and all blank; remove it"),
        ("..\n.?", r"line 2, tile 2: '\?' is not known; expected #, X"),
        ("..\n.\t", r"line 2, tile 2: '\\t' is not known"),
        ("..\n.D", "line 2, tile 2: 'D' is not known"),
        (".,.\n.,", r"line 2: tile 2 is empty; write '\.' for free"),
        ("X,.\n.,DR:-1", "line 2, tile 2: ':-1' is not known"),
        (".,.\n.,XS", "line 2, tile 2: 'XS' is not known"),
        ("##\n##", "maze 'maze' has 0 free cells; expected at least 2"),
        ("##\n#.", "maze 'maze' has 1 free cell; expected at least 2"),
        ("GG", "every free cell is a goal; leave one"),
        ("..#..#.", "falls into 3 regions, of 2 and 2 and 1 cells; expected one; --allow-disc"),
        (".,DR,X", r"the door in \(0, 1\) leads into a wall: cell \(0, 2\)"),
        (".,DU", r"leads into a wall: cell \(-1, 1\) is a wall or off the grid; expected a free"),
        ("DR,DL", r"doors in cells \(0, 0\) and \(0, 1\) face each other; remove one"),
        ("DR:0DR:1,.", r"cell \(0, 0\) has two doors in direction 1; expected one; remove one"),
        ("DR:1.5,.", r"the door in cell \(0, 0\) has back=1.5; expected 0 to 1"),
        (".,PR:7", "line 1: portal end E7 is not in the maze; the ends are: none"),
        ("E1,E1", "line 1: portal end E1 occurs twice; rename it"),
        ("E1,PU:1@0", "line 1: a portal's weight is 0"),
        ("E1,PU:1PU:1", r"cell \(0, 1\) has two portals in direction 0; expected one; remove one"),
        ("E1,PU:1_1_1_1_1", r"the portal in cell \(0, 1\) has 5 ends; expected 1 to 4"),
    ],
)
def test_texts_that_are_refused(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        layouts.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"free": np.ones(4)}, r"free has shape \(4,\); expected \[rows, columns\]"),
        ({"goals": ((0, 0),)}, r"goal cell \(0, 0\) is a wall or off the grid"),
        ({"starts": ((5, 1),)}, r"start cell \(5, 1\) is a wall or off the grid"),
        ({"doors": (Door((0, 0), 1, 0.0),)}, r"door cell \(0, 0\) is a wall"),
        ({"doors": (Door((0, 1), 4, 0.0),)}, "has direction 4; expected 0 up, 1 right"),
        ({"portals": (Portal((0, 1), 0, (((0, 0), 1.0),)),)}, r"portal cell \(0, 0\) is a wall"),
        ({"portals": (Portal((0, 1), 0, ()),)}, "has 0 ends; expected 1 to 4"),
        ({"portals": (Portal((0, 1), 0, (((0, 1), 0.5),)),)}, r"has probabilities \[0.5\]"),
    ],
)
def test_layouts_that_are_refused(parts, message):
    free = np.array([[False, True], [True, True]])
    with pytest.raises(ValueError, match=message):
        Layout(**{"free": free, **parts})


def test_files(tmp_path):
    path = tmp_path / "hall.txt"
    path.write_bytes(b"\xef\xbb\xbf###\r\n#..\r\n")  # as editors elsewhere write it
    assert (layouts.load(path).name, layouts.load(str(path)).num_states) == ("hall", 2)
    for content, message in [(b"\xff\xfe\x00", "not text"), (b"\0\1,", "hall.txt: line 1, tile")]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            layouts.load(path)
    for missing in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=f"cannot read maze {missing}: .*expected a text file"):
            layouts.load(missing)
    path.write_text(".#.")
    assert layouts.load(path, allow_disconnected=True).num_states == 2
    with pytest.raises(ValueError, match=r"hall\.txt: maze 'hall' falls into 2 regions"):
        layouts.load(path)


def test_regions():
    layout = layouts.parse("..#.\n..#.\n####\n...#", allow_disconnected=True)
    assert [part.tolist() for part in layouts.regions(layout)] == [[0, 1, 3, 4], [6, 7, 8], [2, 5]]
    # a portal, a one-way door and the way back through it each join what they lead to
    assert len(layouts.regions(layouts.parse("PU:1,X,E1,DR,."))) == 1
    # a portal that takes the only way, against a closed door's side, leaves the parts apart
    cut = layouts.parse("DRPR:1,.,E1,X", allow_disconnected=True)
    assert len(layouts.regions(cut)) == 1
    cut = layouts.parse("E1DRPR:1,.", allow_disconnected=True)
    assert [part.tolist() for part in layouts.regions(cut)] == [[0], [1]]


def test_from_free_and_immutability():
    free = np.ones((2, 3), bool)
    layout = layouts.from_free(free, "block")
    free[0] = False
    assert layout.num_states == 6
    with pytest.raises(ValueError, match="read-only"):
        layout.free[0, 0] = False
    free[:] = [[True, False, True]] * 2
    with pytest.raises(ValueError, match="maze 'cut' falls into 2 regions, of 2 and 2 cells"):
        layouts.from_free(free, "cut")
    assert layouts.from_free(free, "cut", allow_disconnected=True).num_states == 4


def test_parts_are_told_quickly_and_largest_first():
    """Fifty thousand lone cells; searching for each part anew would take minutes."""
    free = np.zeros((320, 320), bool)
    free[::2, ::2] = True
    free[0, :9] = True
    parts = layouts.regions(Layout(free))
    assert [len(part) for part in parts[:2]] == [9, 1]
    assert len(parts) == 160 * 160 - 5 + 1
    firsts = [part[0] for part in parts[1:]]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("." * 400 + ("\n" + "." * 400) * 299, "120,000 free cells; expected at most 100,000"),
        ("#" * 2_000_000, "1 x 2,000,000 tiles; expected at most 1,000,000 in all"),
        ("DR" * 100_000 + ",.", "has two doors in direction 1"),
    ],
)
def test_large_texts_are_refused_soon(text, message):
    with pytest.raises(ValueError, match=message):
        layouts.parse(text)


def test_a_file_without_end_is_refused():
    with pytest.raises(ValueError, match="more than 16,000,000 bytes; expected at most 100,000"):
        layouts.load("/dev/zero")
