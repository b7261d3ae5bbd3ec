"""The data of a configuration: its files, read and checked, and the time of their steps."""

from train.vector_field.config import Config
from train.vector_field.data import step_time
from train.vector_field.data.files.loading import inputs_by_file, load
from train.vector_field.data.input_delays import delay_inputs
from train.vector_field.data.recordings import Data
from train.vector_field.data.sessions import join_sessions, session_names
from train.vector_field.data.step_time import StepTime


def read_data(config: Config) -> Data:
    """The episodes of all files, of a state-space model with inputs where they act.

    Raises ValueError, in one line, for files that cannot be used.
    """
    settings = config.env.bin_width, config.names
    if config.sessions:
        each = inputs_by_file(config.data, config.inputs)
        parts = [load(path, *settings, (x,) if x else ()) for path, x in each]
        data = join_sessions(parts, session_names(config.data))
    else:
        data = load(config.data, *settings, config.inputs)
    has_delays = config.learner == "state_space"
    return delay_inputs(data, config.state_space.delay) if has_delays else data


def step_time_of(config: Config) -> StepTime:
    """The time of a step of the data. Raises ValueError for what contradicts itself."""
    flags = config.step_time, config.time_unit
    return step_time.load(config.data, config.env.bin_width, *flags, config.names, config.inputs)
