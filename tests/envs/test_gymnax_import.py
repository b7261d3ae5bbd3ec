"""gymnax without seaborn, in a process of its own: here others may have imported it."""

import subprocess
import sys

import pytest

from envs import gymnax_import

SCRIPT = """
import sys

import pytest
from train.gymnax.program import PROGRAM
assert "scipy.stats" not in sys.modules, "imported by seaborn, which gymnax imports"
from gymnax.environments.misc import pong
assert "seaborn" not in sys.modules
import seaborn
assert pong.sns.color_palette is seaborn.color_palette
"""


@pytest.mark.slow
def test_a_command_for_gymnax_does_not_import_seaborn_and_gymnax_still_finds_it():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=120)


def test_a_postponed_module_is_imported_where_it_is_used(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with gymnax_import.postpone_import("colorsys"):
        import colorsys as postponed
    assert "colorsys" not in sys.modules
    assert postponed.rgb_to_hsv(1.0, 0.0, 0.0) == (0.0, 1.0, 1.0)
    import colorsys

    assert colorsys.rgb_to_hsv is postponed.rgb_to_hsv
    with gymnax_import.postpone_import("colorsys"):
        import colorsys as again
    assert again is colorsys is sys.modules["colorsys"]
