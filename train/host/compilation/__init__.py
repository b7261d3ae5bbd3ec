"""What a command compiles, and keeps for later ones; and whether it fits into memory."""
