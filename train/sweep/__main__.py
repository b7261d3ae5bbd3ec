"""`python -m train.sweep NAME [PRESET] --vary FIELD=VALUES ... [--field value ...]`."""

import sys
from pathlib import Path

from train.host.arguments import flag_value
from train.host.command_line.command import command
from train.host.command_line.defaults import fields_in
from train.host.command_line.flags import parse_known
from train.host.errors import UsageError
from train.host.files.run_directory import resume_flag
from train.host.machine import start
from train.host.machine.signals import interruption
from train.host.plain_config import check_options, flag
from train.sweep import build, cluster, jobs
from train.sweep.options import Options


def main(arguments: list[str]) -> int:
    def run_sweep(arguments: list[str]) -> None:
        remaining = list(arguments)
        name = remaining.pop(0) if remaining and not remaining[0].startswith("-") else ""
        preset = remaining.pop(0) if remaining and not remaining[0].startswith("-") else ""
        options, flags = parse_known(build.USAGE, Options, remaining)
        flag_value(remaining, "--resume")  # which refuses two
        check_options(options)
        cluster.refuse(options)
        if options.resume:
            refuse_more(options.resume, name, flags, fields_in(remaining))
            sweep = build.resume(Path(options.resume))
        else:
            sweep = build.begin(name, preset, options, flags)
        with interruption(f"stopped: {resume_flag(sweep.directory)} goes on with the sweep"):
            jobs.run(sweep, options.cluster)

    return command(run_sweep, arguments)


def refuse_more(directory: str, name: str, flags: list[str], fields: set[str]) -> None:
    """Raises UsageError for what is given beside `--resume`, but for a cluster."""
    others = (flag(x) for x in sorted(fields) if x.split(".")[0] not in ("resume", "cluster"))
    more = [name] * bool(name) + [*others, *flags]
    if more:
        raise UsageError(
            f"{resume_flag(directory)} continues as it began, with nothing else but --cluster: "
            f"leave out {more[0]}"
        )


if __name__ == "__main__":
    start.begin(())  # in one process: others are jobs of their own
    sys.exit(main(sys.argv[1:]))
