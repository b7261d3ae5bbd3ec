"""Every float of every preset may be traced, so that `vmap` over it is a sweep in one compilation.

python -m bench.traced_numbers [PROGRAM ...] [--presets PRESET ...]

Replaces one float after another by a tracer through `Program.training`, `init` and `update`, and
prints those that fail, but for the ones that a program declares static. Exits with 1 if there are
any.
"""

import sys
from typing import Any

import jax

from bench.flags import asked_for, small
from train.host.plain_config import numbers, with_field
from train.host.program import Program


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
    failed = 0
    for program, preset in asked_for(__doc__):
        config = small(program.presets[preset])
        names = [field for field in numbers(config) if field not in program.static]
        fixed = [field for field in names if not traces(program, config, field)]
        failed += len(fixed)
        told = f"{len(names) - len(fixed)} of {len(names)} may be traced"
        beside = f", {', '.join(program.static)} static" if program.static else ""
        not_traced = f"; not {', '.join(fixed)}" if fixed else ""
        print(f"{program.name} {preset}: {told}{beside}{not_traced}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
