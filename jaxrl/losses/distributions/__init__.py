"""Policies: distributions over actions, as pytrees that networks return through `jit`.

Axes before those of one action are batch axes `[...]`: `sample` draws them all from one key, and
`log_prob`, `entropy` and `kl` keep them. Logarithms are natural. Classes are imported from the
modules here: `from jaxrl.losses.distributions.discrete import Categorical`.
"""
