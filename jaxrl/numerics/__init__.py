"""Linear algebra, statistics, precision and trees of arrays, free of reinforcement learning."""
