"""`python -m train.sweep NAME [PRESET] --vary FIELD=VALUES ... [--field value ...]`."""

import sys
from pathlib import Path

from train.host.command_line.command import command
from train.host.command_line.flags import parse_known
from train.host.errors import UsageError
from train.host.machine import start
from train.host.machine.signals import interruption
from train.host.plain_config import check_options
from train.sweep import build, cluster, jobs


def main(arguments: list[str]) -> int:
    def run_sweep(arguments: list[str]) -> None:
        remaining = list(arguments)
        name = remaining.pop(0) if remaining and not remaining[0].startswith("-") else ""
        preset = remaining.pop(0) if remaining and not remaining[0].startswith("-") else ""
        options, flags = parse_known(build.USAGE, build.Options, remaining)
        check_options(options)
        cluster.refuse(options)
        if options.resume:
            if name or flags:
                raise UsageError(f"--resume {options.resume} continues as it began: give no more")
            sweep = build.resume(Path(options.resume))
        else:
            sweep = build.begin(name, preset, options, flags)
        with interruption(f"stopped: --resume {sweep.directory} goes on with the sweep"):
            jobs.run(sweep, options.cluster)

    return command(run_sweep, arguments)


if __name__ == "__main__":
    start.begin()
    sys.exit(main(sys.argv[1:]))
