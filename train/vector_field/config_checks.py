"""What a configuration of `train.vector_field` must fulfil, before anything is compiled."""

from envs.arguments import check_name
from envs.vector_field import cart_pole_field
from envs.vector_field.env import FIELDS
from envs.vector_field.fields import check_dimension
from jaxrl import checks
from jaxrl.dynamics import rbf
from train.vector_field.config import CART_POLE, Config, World
from train.vector_field.factories import learns_observation, policy
from train.vector_field.learners.bayesian import FAMILIES


def check(config: Config) -> None:
    """Raises ValueError, in one line, for errors that would only show after compilation."""
    checks.config(config)
    rbf.check(config.model.grid)
    if config.data:
        return  # nothing of the learners of experiments matters
    if config.env.noise == "auto":
        raise ValueError(
            "env.noise auto finds out what recordings hold: give --data FILE.npz, or choose "
            "gaussian, poisson or none"
        )
    check_world(config)
    if learns_observation(config):
        check_own_latent_state(config)
    check_names(config)
    if config.learner == "family":
        check_family(config)
    check_observation(config)
    if config.learner == "state_space":
        check_online(config)


def check_world(config: Config) -> None:
    """Raises ValueError for fields and dimensions that do not fit, and for a plane in no state."""
    for name in config.env.fields:
        check_name("field", name, (*FIELDS, CART_POLE))
        if name == CART_POLE:
            check_cart_pole(config.env)
        else:
            check_dimension(name, config.env.dimension)
    if len({*config.plane}) < 2 or not {*config.plane} <= {*range(config.env.dimension)}:
        raise ValueError(
            f"plane is {config.plane}, expected two different coordinates from 0 to "
            f"{config.env.dimension - 1}"
        )


def check_own_latent_state(config: Config) -> None:
    """Raises ValueError for what a learner with a latent state of its own cannot do."""
    if config.stop_gain:
        raise ValueError(
            f"stop_gain is for the learners bayesian and family: {config.learner} counts its "
            "information anew while its latent space changes"
        )
    latent = config.model.grid.dims
    if config.learner == "sequence_vae" and latent != config.env.dimension:
        raise ValueError(
            f"model.grid.dims is {latent}, expected {config.env.dimension}, as the state has: "
            "the learned field could not be compared with the true one"
        )


def check_names(config: Config) -> None:
    """Raises ValueError unless there are fields and policies, each once, and all are known."""
    for what, names in (("fields", config.env.fields), ("policies", config.policies)):
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"{what} are {', '.join(names) or 'none'}; give at least one, each once"
            )
    for name in config.policies:
        policy(config, name)


def check_family(config: Config) -> None:
    """Raises ValueError unless there is one field, of a known family."""
    fields = config.env.fields
    if len(fields) != 1 or fields[0] not in FAMILIES:
        raise ValueError(
            f"a family needs one field of {', '.join(FAMILIES)}; got {', '.join(fields)}"
        )


def check_observation(config: Config) -> None:
    """Raises ValueError unless the learner can learn from what is observed."""
    if learns_observation(config):
        if config.env.observation not in ("linear", "loglinear"):
            raise ValueError(
                f"{config.learner} is scored through its matrix of channels: choose "
                f"env.observation linear or loglinear, not {config.env.observation}"
            )
        return
    state_is_seen = config.env.observation == "identity" and config.env.noise == "none"
    if config.bayesian.belief == "exact" and not state_is_seen:
        raise ValueError(
            "bayesian.belief exact needs the state itself: choose env.observation identity with "
            "env.noise none and as many env.channels as dimensions, or bayesian.belief filtered"
        )


def check_online(config: Config) -> None:
    """Raises ValueError, in one line, for fields and channels that the model does not have.

    And for fewer samples than the first fit needs.
    """
    fields, observation, noise = config.online.fields, config.env.observation, config.env.noise
    first_fit = config.online.agent.first_fit
    if first_fit > config.run.total_steps:
        raise ValueError(
            f"online.agent.first_fit is {first_fit}, expected at most "
            f"run.total_steps={config.run.total_steps}: nothing would be learned without a fit"
        )
    if not fields or len(set(fields)) < len(fields):
        raise ValueError(
            f"online.fields are {', '.join(fields) or 'none'}; give at least one, each once"
        )
    if (observation, noise) not in (("linear", "gaussian"), ("loglinear", "poisson")):
        raise ValueError(
            f"state_space knows no channels {observation} with noise {noise}: choose "
            "env.observation linear with env.noise gaussian, or loglinear with poisson"
        )


def check_cart_pole(world: World) -> None:
    """Raises ValueError, in one line, for a world that a cart-pole cannot be."""
    if len(world.fields) > 1:
        raise ValueError("cart_pole is no field beside others: give --env.fields cart_pole alone")
    if world.dimension != 4:
        raise ValueError(f"dimension is {world.dimension}, but the field 'cart_pole' needs 4")
    if world.observation not in cart_pole_field.OBSERVATIONS or world.noise == "poisson":
        raise ValueError(
            f"a cart_pole has no observation {world.observation} with noise {world.noise}; "
            f"expected {', '.join(cart_pole_field.OBSERVATIONS)} with noise gaussian or none"
        )
