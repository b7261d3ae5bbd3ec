"""Goals and options in open space: learners with continuous actions."""
