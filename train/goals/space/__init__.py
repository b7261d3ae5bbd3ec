"""Goals and options in open space and in any environment: learners by PPO."""
