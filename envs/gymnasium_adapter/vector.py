"""N environments as a `gymnasium.vector.VectorEnv`, stepped by one compiled program."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from envs.arguments import check_count, python_integer
from envs.gymnasium_adapter import pictures, steps
from envs.gymnasium_adapter.spaces import checked_action, gymnasium_space, to_numpy
from envs.gymnax_corrections import observation_space

Seed = int | Sequence[int | None] | None


class GymnasiumVectorEnv(VectorEnv):
    """`num_envs` environments (N) with the same `params`, by default the environment's.

    `autoreset_mode` says what follows the step that ends an episode:

    * `NEXT_STEP`: the next step ignores the action, whatever its numbers are, and shows the first
      observation of a new episode with reward 0;
    * `SAME_STEP`: that step itself shows it; what ended is in `infos["final_obs"]`, object `[N]`,
      and `infos["final_info"]`;
    * `DISABLED`: nothing, until `reset(options={"reset_mask": mask})` with a bool `[N]`, which the
      other modes know as well.

    Observations are batches in `observation_space`; rewards float64 `[N]`, the two flags bool
    `[N]`. With `render_mode="rgb_array"`, `render()` is a tuple of N pictures.

    Raises ValueError for bad arguments, seeds, masks and actions, and for a step where there is no
    episode; RuntimeError in a process that was forked.
    """

    def __init__(
        self,
        env: Any,
        num_envs: int = 1,
        params: Any = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ):
        steps.check_process()
        steps.check_env(env)
        pictures.check_mode(env, render_mode)
        num_envs = python_integer(num_envs)
        check_count("num_envs", num_envs)
        self.env, self.num_envs = env, num_envs
        self.params = env.default_params if params is None else params
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = pictures.metadata(env) | {"autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self.single_observation_space = gymnasium_space(observation_space(env, self.params))
        self.single_action_space = gymnasium_space(env.action_space(self.params))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._episode: steps.Episode | None = None
        self._ended = np.zeros(num_envs, bool)

    def reset(
        self, *, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """First observations, and no info.

        `seed` s means s + i for environment i; of N seeds each has its own, and None leaves an
        environment its random numbers.
        The option `reset_mask`, bool `[N]`, leaves the environments outside of it as they are.
        """
        steps.check_process()
        mask = self._mask(dict(options or {}))
        words, is_given = self._words(seed)
        super().reset(seed=int(seed) if isinstance(seed, int | np.integer) else None)
        if self._episode is None:
            if not mask.all():
                raise ValueError("reset_mask leaves environments without an episode; reset all")
            random_words = self.np_random.integers(steps.WORDS, size=self.num_envs, dtype=np.uint32)
            keys = jax.vmap(steps.key_of)(np.where(is_given, words, random_words))
            episode = steps.start_all(self.env, self.params, keys)
        else:
            is_chosen = (is_given & mask)[:, None]
            keys = jnp.where(is_chosen, jax.vmap(steps.key_of)(words), self._episode.key)
            episode = self._episode._replace(key=keys)
            episode = steps.restart(self.env, self.params, episode, mask)
        self._episode, self._ended = episode, self._ended & ~mask
        return to_numpy(self.observation_space, jax.device_get(episode.obs)), {}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Observations, rewards, terminations, truncations and infos of one step."""
        steps.check_process()
        if self._episode is None:
            raise ValueError("there are no episodes to step in; call reset first")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            which = np.flatnonzero(self._ended).tolist()
            raise ValueError(
                f"environments {which} have ended; reset them with options={{'reset_mask': mask}}"
            )
        new = self._ended & (self.autoreset_mode is AutoresetMode.NEXT_STEP)
        actions = checked_action(self.single_action_space, actions, self.num_envs, new)
        episode, output = steps.step_all(
            self.env, self.autoreset_mode, self.params, self._episode, actions
        )
        obs, output = jax.device_get((episode.obs, output))
        self._episode, self._ended = episode, output.terminated | output.truncated
        infos = self._infos(output, ~new)
        return (
            to_numpy(self.observation_space, obs),
            np.array(output.reward, np.float64),
            np.array(output.terminated),
            np.array(output.truncated),
            infos,
        )

    def render(self) -> tuple[np.ndarray, ...] | None:
        """The pictures of the present states, or None without a render mode."""
        if self.render_mode is None:
            return None
        if self._episode is None:
            raise ValueError("there are no episodes to draw; call reset first")
        state = jax.device_get(self._episode.state)
        states = (jax.tree.map(lambda x, i=i: x[i], state) for i in range(self.num_envs))
        return tuple(pictures.frame(self.env, self.params, env_state) for env_state in states)

    def _infos(self, output: steps.StepOutput, is_stepped: np.ndarray) -> dict[str, Any]:
        """Infos of the environments in `is_stepped`; of ended ones as final, if they began anew."""
        ended = self._ended
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not ended.any():
            return _masked(output.info, is_stepped)
        obs = to_numpy(self.observation_space, output.obs)
        final_obs = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(ended):
            final_obs[i] = to_numpy(
                self.single_observation_space, jax.tree.map(lambda x, i=i: x[i], obs)
            )
        final = {"final_obs": final_obs, "final_info": _masked(output.info, ended)}
        masks = {f"_{name}": ended.copy() for name in final}
        return _masked(output.info, is_stepped & ~ended) | final | masks

    def _mask(self, options: dict[str, Any]) -> np.ndarray:
        mask = options.pop("reset_mask", np.ones(self.num_envs, bool))
        if options:
            raise ValueError(f"options are {list(options)}; expected reset_mask only")
        is_mask = isinstance(mask, np.ndarray) and mask.dtype == bool
        if not is_mask or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"reset_mask is {' '.join(repr(mask).split())[:60]}; expected a NumPy array, bool "
                f"[{self.num_envs}], with at least one True"
            )
        return mask

    def _words(self, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
        """The seed of each environment, uint32 `[N]`, and for which there is one, bool `[N]`."""
        if seed is None:
            seeds = [None] * self.num_envs
        elif isinstance(seed, Sequence | np.ndarray):
            seeds = list(seed)
        else:
            steps.word_of(seed)  # refuses what is no seed
            seeds = [int(seed) + i for i in range(self.num_envs)]  # NumPy's would wrap around
        if len(seeds) != self.num_envs:
            raise ValueError(
                f"got {len(seeds)} of {self.num_envs} seeds; expected all, or one number"
            )
        words = [steps.word_of(0 if one is None else one) for one in seeds]
        return np.array(words, np.uint32), np.array([one is not None for one in seeds])


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = ", ".join(option.value for option in AutoresetMode)
        raise ValueError(f"autoreset_mode is {mode!r}; expected one of {names}") from None


def _masked(info: dict[str, Any], mask: np.ndarray) -> dict[str, Any]:
    """The info of the environments in `mask`, zero elsewhere, each beside its mask `_name`."""
    if not mask.any():
        return {}
    masked_info: dict[str, Any] = {}
    for name, value in info.items():
        if isinstance(value, dict):
            masked_info[name] = _masked(value, mask)
        else:
            rows = mask.reshape(-1, *[1] * (value.ndim - 1))
            masked_info[name] = np.where(rows, value, np.zeros((), value.dtype))
        masked_info[f"_{name}"] = mask.copy()
    return masked_info
