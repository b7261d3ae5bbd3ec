"""The presets of experiments; `recordings` is of data alone and refuses to be without a file."""

from train.vector_field.presets import PRESETS

EXPERIMENTS = tuple(name for name, (config, *_) in PRESETS.items() if config.env.noise != "auto")
