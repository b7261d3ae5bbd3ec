"""What lengths and stiffness are told in: px and units of stiffness, or µm and kPa."""

from typing import NamedTuple


class Units(NamedTuple):
    """Factors from px and units of stiffness, and the names of what they become."""

    length: float = 1.0
    stiffness: float = 1.0
    length_name: str = "px"
    stiffness_name: str = ""

    @property
    def stiffness_label(self) -> str:
        """What an axis of stiffness is called."""
        return f"stiffness ({self.stiffness_name})" if self.stiffness_name else "stiffness"


PIXELS = Units()


def physical(pixel_size: float, stiffness_unit: float) -> Units:
    """µm and kPa, given how many of them a px and a unit of stiffness are."""
    return Units(pixel_size, stiffness_unit, "µm", "kPa")
