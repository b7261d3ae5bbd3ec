"""`python -m train.vector_field`, and `python -m train.vector_field advise RUN`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    from train.vector_field import advice
    from train.vector_field.program import PROGRAM

    if sys.argv[1:2] == ["advise"]:
        sys.exit(advice.main(sys.argv[2:]))
    sys.exit(command.main(PROGRAM))
