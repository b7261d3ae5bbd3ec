"""`python -m train.durotaxis`, and of tracks `fit TRACKS.csv` and `simulate TRACKS.csv`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    if sys.argv[1:2] == ["fit"]:
        from train.durotaxis.tracks import command as fitting

        sys.exit(fitting.main(sys.argv[2:]))
    if sys.argv[1:2] == ["simulate"]:
        from train.durotaxis.tracks import simulate_command

        sys.exit(simulate_command.main(sys.argv[2:]))
    from train.durotaxis.program import PROGRAM

    sys.exit(command.main(PROGRAM))
