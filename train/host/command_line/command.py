"""The command line of every program: presets, flags, `--resume`, and errors in one line.

python -m train.NAME [PRESET] [--config FILE] [--field value ...]
"""

import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from jaxrl import dependent_fields
from jaxrl.numerics.precision import in_float32
from train.host.arguments import flag_value
from train.host.command_line.defaults import (
    fields_in,
    first_preset,
    follow_budget,
    preset_line,
    shape_line,
    suited_preset,
)
from train.host.command_line.flags import parse_flags
from train.host.command_line.saved_config import (
    preset_and_config,
    split_config_flag,
    without_run_location,
)
from train.host.command_line.suggestions import suggestion_text
from train.host.compilation import compilation_cache, exported
from train.host.errors import (
    FAILED,
    QUIT,
    REFUSED,
    RunError,
    UsageError,
    in_one_line,
    os_error_message,
)
from train.host.files.run_directory import RunDirectory, read_config_file, resume_flag
from train.host.machine import devices, distributed, jax_settings, quiet_libraries
from train.host.machine.progress import print_line
from train.host.machine.signals import Ending, interruption
from train.host.plain_config import field_of, flag, names_below
from train.host.program import Program
from train.host.running.origin import explain, origin
from train.host.running.preparation import complete
from train.host.running.run import train_program

STOPPED = "stopped: what it had written is whole; start it again for the rest"
FROM_FILE = """--config FILE: begin with the values in FILE, the config.yaml of a run, or its
directory; other flags change them."""


def main(program: Program, arguments: Sequence[str] | None = None) -> int:
    """Trains as the command line says; returns the exit code (see `train.host.errors`).

    A ValueError of `Program.training` is reported as bad input.
    """

    def train(arguments: list[str]) -> None:
        distributed.refuse_unjoined(arguments)
        with distributed.refused_together():
            config, preset = parse(program, arguments)
        try:
            config, training = complete(program, config)
        except ValueError as error:
            raise UsageError(with_flags(in_one_line(error), config)) from error
        with exported.keep_programs_of(program.name if program.is_ours else "", config):
            train_program(program, config, preset, training)

    if arguments is None:  # a program of one's own has not come through `train.host.entrance`
        quiet_libraries.silence()
        arguments = sys.argv[1:]
    return command(train, arguments)


def command(function: Callable[[list[str]], object], arguments: Sequence[str] = ()) -> int:
    """Calls `function` with the arguments that are its own, without the flags of every command.

    Turns a RunError into one line on stderr and an exit code, which it returns.
    So it does with whatever arises in a user's own file, an environment's or a program's. Signs
    that stdout cannot hold are replaced there: they are not worth losing what was computed.
    Commands compute in 32 bits, whatever `JAX_ENABLE_X64` says.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # not in a notebook
        sys.stdout.reconfigure(errors="replace")
    try:
        with interruption(STOPPED), Ending():
            try:
                devices.refuse_none()
                jax_settings.refuse_unusable()
                in_float32(function)(compilation_cache.begin(arguments))
            finally:
                sys.stdout.flush()  # here, where a closed pipe can still be handled
    except RunError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader has closed the pipe, as in `--help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains later
        return QUIT
    except OSError as error:
        print(os_error_message(error), file=sys.stderr)
        return FAILED
    except Exception as error:
        if origin(error) is None:
            raise
        print(explain(error), file=sys.stderr)
        return REFUSED
    return 0


def parse(
    program: Program,
    arguments: Sequence[str],
    reset_fields: Collection[str] = (),
    refuses_idle: bool = True,
) -> tuple[Any, str]:
    """`(config, preset)`; with `--resume DIR`, the configuration saved there is the default.

    So it is with `--config FILE`, but for where that run was, and for the fields of `run` in
    `reset_fields`. What flags leave open suits the environment and the budget
    (`train.host.command_line.defaults`), unless a file says it. Flags that have no effect with the
    others are refused, unless the caller does that later, once there are values of more fields.
    """
    arguments, presets = list(arguments), program.presets
    chosen = arguments.pop(0) if arguments and not arguments[0].startswith("-") else None
    if chosen is not None and chosen not in presets:
        guess = suggestion_text(chosen, presets)
        raise UsageError(f"there is no preset {chosen}{guess}: choose one of {', '.join(presets)}")
    file, arguments = split_config_flag(arguments)
    read = partial(parse_fields, program, arguments, chosen)
    if directory := flag_value(arguments, "--resume"):
        if file:
            raise UsageError(f"{resume_flag(directory)} has a configuration: leave out --config")
        preset, default = preset_and_config(
            program, directory, RunDirectory.open(directory).config(), chosen
        )
        config = read(preset, default)
    elif file:
        preset, saved = preset_and_config(program, file, read_config_file(file), chosen)
        default = without_run_location(saved, presets[preset].config, reset_fields)
        config = read(preset, default)
        if (suited := suited_preset(program, preset, config)) != preset:
            place = program.environment(config)
            print_line(f"{program.name}: {file} is of {preset}, though {suited} is for {place}")
    else:
        preset = chosen or first_preset(program)
        if line := shape_line(program, preset, is_named=chosen is not None):
            print_line(line)
        config = read(preset, presets[preset].config)
        if (suited := suited_preset(program, preset, config)) != preset:
            print_line(preset_line(program, preset, suited, config))
            preset, config = suited, read(suited, presets[suited].config)
        default = presets[preset].config
    if not directory:
        config = follow_budget(config, default, fields_in(arguments))
    if refuses_idle:
        refuse_idle(program, config, default)
    return config, preset


def parse_fields(
    program: Program, arguments: Sequence[str], chosen: str | None, preset: str, default: Any
) -> Any:
    """`default`, of a preset, with the fields that flags set, after the name that was `chosen`."""
    presets = program.presets
    usage = f"{program.command} [{' | '.join(presets)}]"
    idle = lambda config: [flag(name, config) for name in idle_fields(program, config)]
    try:
        return parse_flags(usage, default, arguments, describe_presets(program, preset), idle)
    except UsageError as error:
        late_preset = next(
            (x for x in arguments if x in presets and f"options: {x};" in str(error)), None
        )
        if chosen is None and late_preset is not None:
            raise UsageError(
                f"the preset goes before the flags: {program.command} {late_preset} --..."
            ) from None
        raise


def refuse_idle(program: Program, config: Any, default: Any) -> None:
    """Raises UsageError for a flag that has no effect with the others."""
    for name, reason in idle_fields(program, config).items():
        if field_of(config, name) != field_of(default, name):
            raise UsageError(f"{flag(name, config)} has no effect, as {reason}: leave it out")


def idle_fields(program: Program, config: Any) -> dict[str, str]:
    """The fields that have no effect with the others, by dotted name, and why."""
    try:
        return {**dependent_fields.idle_fields(config), **program.idle(config)}
    except ValueError:
        return {}  # `Program.training` refuses it, with a message of its own


def with_flags(message: str, config: Any) -> str:
    """`message` with the fields that it names as the flags that set them: `--agent.clip`.

    A field is named by its dotted name or, if that is clear, by the last part of it.
    """
    names = names_below(config, "")

    def field_to_flag(word: re.Match) -> str:
        matches = [x for x in names if x == word[0] or x.endswith(f".{word[0]}")]
        is_field = word[0] in names or "_" in word[0]
        return flag(matches[0], config) if is_field and len(matches) == 1 else word[0]

    return re.sub(r"(?<![\w./-])[a-z]\w*[._]\w+(\.\w+)*|^\w+(?= is )", field_to_flag, message)


def describe_presets(program: Program, preset: str) -> str:
    """The text above the flags in `--help`: a line for each preset, and one for `--config`."""
    about = inspect.getdoc(type(program.presets[preset].config)) or ""
    if any(x.summary for x in program.presets.values()):
        lines = [f"  {name}: {x.summary}" for name, x in program.presets.items()]
        about = "\n".join(["Presets, the first one is the default:", *lines])
    if len(program.presets) > 1:
        about += (
            f"\n\nThe flags below, with their defaults, are those of {preset}; "
            f"{program.command} PRESET --help shows those of another preset."
        )
    return f"{about}\n\n{FROM_FILE}"
