"""State-space models that learn from a stream of samples, and the choice between them."""
