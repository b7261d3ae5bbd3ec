"""Log lines and warnings of libraries, which say nothing to who has started a command.

What goes wrong in a library reaches a command as an exception. Who sets the variables of logging or
of warnings sees what they ask for.
"""

import io
import logging
import os
import sys
import warnings

XLA = "TF_CPP_MIN_LOG_LEVEL"
OF_JAX, ONLY_FATAL = "1", "3"
"""What JAX sets, for the processes that its own starts, too; and what is set here.

Alarms about slow compilation are errors to XLA. What ends the process is written even so."""
LIBRARIES = (
    *("jax", "jaxlib", "flax", "optax", "chex", "jraph", "gymnax", "gymnasium", "numpy", "scipy"),
    *("absl", "matplotlib", "PIL", "tensorboardX", "wandb", "submitit", "websockets", "asyncio"),
)
SPOKEN = ("jax", "jaxlib")
"""Their loggers tell which device is used instead of another one."""


def silence() -> None:
    """Keeps libraries from writing to the terminal of this process; also if JAX is loaded."""
    if os.environ.get(XLA, OF_JAX) == OF_JAX:
        os.environ[XLA] = ONLY_FATAL
        if "jax" in sys.modules:
            from jax._src.lib import utils  # pyright: ignore[reportPrivateImportUsage]

            utils.absl_set_min_log_level(int(ONLY_FATAL))
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=rf"({'|'.join(LIBRARIES)})(\.|$)")
    for name in set(LIBRARIES) - set(SPOKEN):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def keep_off_output() -> None:
    """Keeps what libraries write past Python off the standard output, such as Gloo's greetings.

    It goes nowhere, or to the standard error where lines of XLA are asked for. Does nothing where
    the output is no file of this process, as in a notebook.
    """
    output = sys.stdout
    try:
        is_plain = isinstance(output, io.TextIOWrapper) and output.fileno() == 1
    except OSError:
        is_plain = False
    if not is_plain:
        return
    output.flush()
    buffer = os.fdopen(os.dup(1), "wb")
    is_unbuffered = output.write_through  # pyright: ignore[reportAttributeAccessIssue]
    ways = {"line_buffering": output.line_buffering, "write_through": is_unbuffered}
    sys.stdout = io.TextIOWrapper(buffer, output.encoding, output.errors, **ways)
    other = os.dup(2) if os.environ.get(XLA) == "0" else os.open(os.devnull, os.O_WRONLY)
    os.dup2(other, 1)
    os.close(other)


def output_of_children() -> int | None:
    """The descriptor that other processes get as their standard output; None: that of this one."""
    try:
        return sys.stdout.fileno()
    except (AttributeError, OSError):  # as in a notebook
        return None
