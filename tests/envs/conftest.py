"""How the tests of environments run: compiled in a hurry, as the tests of `jaxrl` are not."""

from tests.hurry import compiled_in_a_hurry as compiled_in_a_hurry
