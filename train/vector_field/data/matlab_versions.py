"""Whether a file is one of MATLAB, found by its first bytes."""

import re
import struct

VERSION_5, VERSION_7_3 = b"MATLAB 5.0", b"MATLAB 7.3"
"""What files of version 5 to 7, and of 7.3, begin with."""
LONGEST_NAME = 64
"""Characters of a variable's name, at most, the 0 at its end included."""
VERSION_4 = "iiiii"
"""Numbers that a file of version 4 begins with: kind, rows, columns, whether complex, and how many
bytes the name has that follows, of which the last is 0."""


def is_readable(head: bytes) -> bool:
    """Whether a file that begins so is of version 4 to 7."""
    return head.startswith(VERSION_5) or _is_version_4(head)


def _is_version_4(head: bytes) -> bool:
    """Whether a file that begins so is of version 4, which has no name of its own to be known by.

    Its kind is a number of four digits, MOPT: M is 1 where bytes are in the order of "big endian",
    O is 0, P says how numbers are stored, and T whether they are a matrix, a text or sparse.
    """
    if len(head) < struct.calcsize(VERSION_4):
        return False
    for order, machine in (("<", 0), (">", 1)):
        kind, rows, columns, is_complex, length = struct.unpack_from(order + VERSION_4, head)
        digits = [kind // 10**k % 10 for k in (3, 2, 1, 0)]
        fits = digits[:2] == [machine, 0] and digits[2] <= 5 and digits[3] <= 2 and kind < 2000
        is_matrix = rows >= 0 and columns >= 0 and is_complex in (0, 1)
        name = head[struct.calcsize(VERSION_4) :][:length] if 1 < length <= LONGEST_NAME else b""
        if fits and is_matrix and re.fullmatch(rb"[A-Za-z]\w*\x00", name):
            return True
    return False
