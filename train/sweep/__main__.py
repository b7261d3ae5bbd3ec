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
    def sweep(arguments: list[str]) -> None:
        given = list(arguments)
        name = given.pop(0) if given and not given[0].startswith("-") else ""
        preset = given.pop(0) if given and not given[0].startswith("-") else ""
        options, rest = parse_known(build.USAGE, build.Options, given)
        check_options(options)
        cluster.refuse(options)
        if options.resume:
            if name or rest:
                raise UsageError(f"--resume {options.resume} continues as it began: give no more")
            planned = build.resume(Path(options.resume))
        else:
            planned = build.begin(name, preset, options, rest)
        with interruption(f"stopped: --resume {planned.directory} goes on with the sweep"):
            jobs.run(planned, options.cluster)

    return command(sweep, arguments)


if __name__ == "__main__":
    start.begin()
    sys.exit(main(sys.argv[1:]))
