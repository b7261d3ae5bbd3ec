"""A closed loop with a rig: observations in, inputs out, while a model is learned."""
