"""What learns for a closed loop: compiled functions, and a learner in a process of its own."""
