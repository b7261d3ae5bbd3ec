"""Vector fields learned online, by experiment design: `python -m train.vector_field`."""
