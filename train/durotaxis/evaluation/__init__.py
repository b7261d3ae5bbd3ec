"""`python -m train.evaluate RUN` for runs of `train.durotaxis`: options, playing, results."""
