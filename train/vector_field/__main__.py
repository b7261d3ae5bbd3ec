"""`python -m train.vector_field`: training, `--look` beside `--data`, and the commands `advise RUN`
and `stream`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    if sys.argv[1:2] == ["stream"]:
        from train.vector_field.stream import command as stream_command

        sys.exit(stream_command.main(sys.argv[2:]))
    if sys.argv[1:2] == ["advise"]:
        from train.vector_field import advice

        sys.exit(advice.main(sys.argv[2:]))
    from train.vector_field.program import PROGRAM

    if "--look" in sys.argv:
        from train.vector_field.look import look

        sys.exit(look.main(PROGRAM, sys.argv[1:]))
    sys.exit(command.main(PROGRAM))
