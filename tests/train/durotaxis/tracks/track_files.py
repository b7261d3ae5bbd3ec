"""Files of one small colony in all formats, written by hand.

Cell 1 rests at (10, 20) in frames 0 to 4 and has a child, 2, at (14, 20) in frame 2. Cell 2 lives
in frames 2 and 3; cell 3, without a parent, in frames 0 to 4 at (40, 30).
"""

from pathlib import Path

import numpy as np
from PIL import Image

OWN = """frame,cell,parent,x,y
0,1,,10,20
0,3,,40,30
1,1,,10,20
1,3,,40,30
2,1,,10,20
2,2,1,14,20
2,3,,40,30
3,1,,10,20
3,2,1,14,20
3,3,,40,30
4,1,,10,20
4,3,,40,30
"""
HEADINGS = (
    "LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,FRAME\n"
    "Label,Spot ID,Track ID,Quality,X,Y,Frame\n"
    "Label,Spot ID,Track ID,Quality,X,Y,Frame\n"
    ",,,(quality),(micron),(micron),\n"
)
EDGE_HEADINGS = (
    "LABEL,TRACK_ID,SPOT_SOURCE_ID,SPOT_TARGET_ID\n"
    "Label,Track ID,Source spot ID,Target spot ID\n"
    "Label,Track ID,Source ID,Target ID\n,,,\n"
)
SPOTS = [  # id, track, x and y in px, frame
    *((100 + t, 0, 10, 20, t) for t in range(5)),
    *((200 + t, 0, 14, 20, t) for t in (2, 3)),
    *((300 + t, 1, 40, 30, t) for t in range(5)),
]
EDGES = [
    *((100 + t, 101 + t) for t in range(4)),
    (101, 202),
    (202, 203),
    *((300 + t, 301 + t) for t in range(4)),
]
WORDS = (
    "frame,cell,parent,x,y\n",
    "L B E P X Y\n",
    "0,1,,1,1\n",
    "1 0 4 0 1 1\n",
    "1,2,1,",
    "1e400",
    ";",
    '"',
)
"""What files of tracks are made of, for tests that put them together at random."""
LINEAGE = "1 0 1 0\n2 2 3 1\n3 0 4 0\n4 2 4 1\n"
"""Cell 1 ends when it divides into 2 and 4, and 4 is where it was."""


def write_spots(folder: Path, scale: float = 0.5, dropped: int = 1) -> tuple[str, str]:
    """Spots and edges of TrackMate, places in µm, and some spots in no track."""
    rows = [f"ID{i},{i},{track},1,{scale * x},{scale * y},{t}" for i, track, x, y, t in SPOTS]
    rows += [f"ID{900 + i},{900 + i},,1,1,1,{i}" for i in range(dropped)]
    (folder / "spots.csv").write_text(HEADINGS + "\n".join(rows) + "\n")
    links = [f"{a} → {b},0,{b},{a}" for a, b in EDGES]  # TrackMate does not sort them by time
    (folder / "edges.csv").write_text(EDGE_HEADINGS + "\n".join(links) + "\n")
    return str(folder / "spots.csv"), str(folder / "edges.csv")


def write_label_images(folder: Path) -> str:
    """A lineage with label images of 16 bits, squares of 4 px around each place."""
    (folder / "man_track.txt").write_text(LINEAGE)
    places = {1: (10, 20, 0, 1), 2: (14, 20, 2, 3), 3: (40, 30, 0, 4), 4: (10, 20, 2, 4)}
    for frame in range(5):
        labels = np.zeros((50, 60), np.uint16)
        for label, (x, y, begin, end) in places.items():
            if begin <= frame <= end:
                labels[y - 2 : y + 2, x - 2 : x + 2] = label
        Image.fromarray(labels).save(folder / f"man_track{frame:03}.tif")
    return str(folder / "man_track.txt")
