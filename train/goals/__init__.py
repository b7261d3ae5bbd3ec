"""Goals reached sooner with learned eigenvectors: `python -m train.goals RUN`."""
