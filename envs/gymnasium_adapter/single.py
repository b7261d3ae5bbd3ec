"""One environment as a `gymnasium.Env`."""

from typing import Any

import gymnasium
import jax
import numpy as np

from envs.gymnasium_adapter import pictures, steps
from envs.gymnasium_adapter.spaces import checked_action, gymnasium_space, to_numpy
from envs.gymnax_corrections import observation_space


class GymnasiumEnv(gymnasium.Env):
    """One environment, with `params` instead of its default ones.

    Observation and action are NumPy arrays in `observation_space` and `action_space`; an
    observation that is a tree, such as a graph, is a dict of its parts. The reward is a float.
    `render_mode` is None or, where `envs` can draw the environment, "rgb_array": then `render()`
    returns the present state, uint8 `[H, W, 3]`. After the end of an episode only `reset` goes on.

    Raises ValueError for what is no environment, for a render mode without a drawing, and later for
    actions that are outside of the space or come when there is no episode. Raises RuntimeError in a
    process that was forked.
    """

    def __init__(self, env: Any, params: Any = None, render_mode: str | None = None):
        steps.check_process()
        steps.check_env(env)
        pictures.check_mode(env, render_mode)
        self.env = env
        self.params = env.default_params if params is None else params
        self.metadata = pictures.metadata(env)
        self.render_mode = render_mode
        self.observation_space = gymnasium_space(observation_space(env, self.params))
        self.action_space = gymnasium_space(env.action_space(self.params))
        self._episode: steps.Episode | None = None
        self._is_running = False

    def reset(
        self, *, seed: int | np.integer | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """The first observation of an episode, and no info. There are no options."""
        steps.check_process()
        if options:
            raise ValueError(f"options are {list(options)}; expected none")
        word = None if seed is None else steps.word_of(seed)
        super().reset(seed=None if seed is None else int(seed))  # Gymnasium refuses NumPy's
        if word is None and self._episode is not None:
            key = self._episode.key
        else:
            random_word = self.np_random.integers(steps.WORDS) if word is None else word
            key = steps.key_of(np.uint32(random_word))
        episode = steps.start(self.env, self.params, key)
        self._episode, self._is_running = episode, True
        return to_numpy(self.observation_space, jax.device_get(episode.obs)), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated and info of one step."""
        steps.check_process()
        if self._episode is None or not self._is_running:
            raise ValueError("there is no episode to step in; call reset first")
        action = checked_action(self.action_space, action)
        self._episode, output = steps.step(self.env, self.params, self._episode, action)
        output = jax.device_get(output)
        terminated, truncated = bool(output.terminated), bool(output.truncated)
        self._is_running = not (terminated or truncated)
        obs = to_numpy(self.observation_space, output.obs)
        return obs, float(output.reward), terminated, truncated, _info_to_numpy(output.info)

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The picture of the present state, or None without a render mode."""
        if self.render_mode is None:
            return None
        if self._episode is None:
            raise ValueError("there is no episode to draw; call reset first")
        return pictures.frame(self.env, self.params, self._episode.state)


def _info_to_numpy(info: dict[str, Any]) -> dict[str, Any]:
    """Numbers as NumPy's, flags as Python's, which Gymnasium's own vectors keep as flags."""

    def convert(x: Any) -> Any:
        array = np.array(x)
        if array.shape:
            return array
        return bool(array) if array.dtype == bool else array[()]

    return jax.tree.map(convert, info)
