"""How a game of Snake begins: obstacles, a long snake, a board of its own."""
