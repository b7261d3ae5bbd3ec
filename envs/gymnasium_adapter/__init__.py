"""Our environments, and gymnax's, as those of Gymnasium: NumPy outside, one compiled step inside.

    env = GymnasiumEnv(Snake(), render_mode="rgb_array")
    games = GymnasiumVectorEnv(Snake(), 256, autoreset_mode=AutoresetMode.SAME_STEP)

or, after `register()`, `gymnasium.make("jaxrl/Snake-v0", rows=12)` and
`gymnasium.make_vec("jaxrl/Snake-v0", num_envs=256)`. Nothing else in `envs` needs Gymnasium.

`reset(seed=s)` begins a sequence of random numbers that only `s`, modulo 2³², decides. Environment
i of a vector that was reset with `seed=s` is the single one that was reset with `seed=s + i`.
Everything that an environment reports in `info` is there as NumPy arrays and numbers, with the
masks `_name` in vectors. Workers must be spawned: in a process that was forked JAX would hang, so
that these refuse to begin.
"""

from gymnasium.vector import AutoresetMode

from envs.gymnasium_adapter.registration import make, make_vec, register
from envs.gymnasium_adapter.single import GymnasiumEnv
from envs.gymnasium_adapter.vector import GymnasiumVectorEnv

__all__ = ["AutoresetMode", "GymnasiumEnv", "GymnasiumVectorEnv", "make", "make_vec", "register"]
