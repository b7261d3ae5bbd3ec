"""What learned eigenvectors are good for: potentials, options and Q-learning with them."""
