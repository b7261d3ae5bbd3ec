"""`python -m train.vector_field`, with the commands `advise RUN` and `stream` beside training."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    if sys.argv[1:2] == ["stream"]:
        from train.vector_field.stream import command as stream_command

        sys.exit(stream_command.main(sys.argv[2:]))
    from train.vector_field import advice
    from train.vector_field.program import PROGRAM

    if sys.argv[1:2] == ["advise"]:
        sys.exit(advice.main(sys.argv[2:]))
    sys.exit(command.main(PROGRAM))
