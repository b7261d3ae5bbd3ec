"""Every float of every preset may be traced, so that `vmap` over it is a sweep in one compilation.

python -m bench.traced_numbers [PROGRAM ...] [--presets PRESET ...]

Replaces one float after another by a tracer through `Program.training`, `init` and `update`, and
prints those that fail, but for the ones that a program declares static. Exits with 1 if there are
any.
"""

import sys
from typing import Any

import jax

from bench.flags import selected_presets, shrink
from train.host.plain_config import numbers, with_field
from train.host.program import Program


def is_traceable(program: Program, config: Any, name: str) -> bool:
    """Whether the field of that name may be traced."""

    def init_and_update(value: jax.Array, key: jax.Array) -> Any:
        training = program.training(with_field(config, name, value))
        return training.update(training.init(key))

    try:
        jax.eval_shape(init_and_update, 0.5, jax.random.key(0))
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        return False
    return True


def main() -> int:
    failed = 0
    for program, preset in selected_presets(__doc__):
        config = shrink(program.presets[preset].config)
        names = [field for field in numbers(config) if field not in program.static]
        untraced = [field for field in names if not is_traceable(program, config, field)]
        failed += len(untraced)
        traced_text = f"{len(names) - len(untraced)} of {len(names)} may be traced"
        static_text = f", {', '.join(program.static)} static" if program.static else ""
        not_traced = f"; not {', '.join(untraced)}" if untraced else ""
        print(f"{program.name} {preset}: {traced_text}{static_text}{not_traced}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
