"""One algorithm a file: a `Config`, a state, losses as free functions, and `make`."""
