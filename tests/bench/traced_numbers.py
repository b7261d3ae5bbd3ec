"""Every float of every preset may be traced, so that `vmap` over it is a sweep in one compilation.

python -m tests.bench.traced_numbers [PROGRAM ...] [--presets PRESET ...]

Replaces one float after another by a tracer through `Program.training`, `init` and `update`, and
prints those that fail but for the ones that a program declares static, with its reasons. Exits
with 1 if there are any.
"""

import argparse
import sys
from typing import Any

import jax

from tests.bench.flags import PROGRAMS, small
from train.host.config import numbers, with_field
from train.host.program import Program, find


def traces(program: Program, config: Any, name: str) -> bool:
    """Whether the field of that name may be traced."""

    def whole(value: jax.Array, key: jax.Array) -> Any:
        training = program.training(with_field(config, name, value))
        return training.update(training.init(key))

    try:
        jax.eval_shape(whole, 0.5, jax.random.key(0))
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--presets", nargs="*", help="default: all")
    options = parser.parse_args()
    failed = 0
    for name in options.programs:
        program = find(name, "the command line")
        for preset in options.presets or program.presets:
            config = small(program.presets[preset])
            names = [field for field in numbers(config) if field not in program.static]
            fixed = [field for field in names if not traces(program, config, field)]
            failed += len(fixed)
            told = f"{len(names) - len(fixed)} of {len(names)} may be traced"
            print(f"{name} {preset}: {told}{': not ' * bool(fixed)}{', '.join(fixed)}", flush=True)
        for field, reason in program.static.items():
            print(f"{name}: {field} is static: {reason}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
