"""Pictures and films of a game of Snake."""
