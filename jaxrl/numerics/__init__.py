"""Linear algebra, statistics and precision, free of reinforcement learning."""
