"""Environments around any environment on gymnax's interface, gymnax's own or ours.

    env = ActionRepeat(StickyActions(Snake()), 4)  # in the order of the Arcade Learning Environment
    env = FrameStack(env, 4)

They nest in any order, and each is an environment itself: pure, with auto-reset and
`info["final_observation"]`. What else the wrapped environment, `Wrapper.env`, reports in `info`
passes through. Wrappers are equal if they wrap equal environments in the same way; environments of
gymnax are equal to themselves only. For gradients through steps, wrap an environment that
`with_transition_gradients` returned.
"""

from envs.wrappers.action_repeat import ActionRepeat
from envs.wrappers.flatten_observation import FlattenObservation
from envs.wrappers.frame_stack import FrameStack
from envs.wrappers.last_action import LastAction
from envs.wrappers.plain_actions import PlainActions
from envs.wrappers.sticky_actions import StickyActions
from envs.wrappers.wrapper import Wrapper

__all__ = [
    "ActionRepeat",
    "FlattenObservation",
    "FrameStack",
    "LastAction",
    "PlainActions",
    "StickyActions",
    "Wrapper",
]
