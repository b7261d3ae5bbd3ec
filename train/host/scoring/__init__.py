"""Games that are played for a score, and the best policy of a run."""
