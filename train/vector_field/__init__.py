"""Vector fields learned online, by stimulation: `python -m train.vector_field`."""
