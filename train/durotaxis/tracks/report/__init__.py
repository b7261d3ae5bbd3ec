"""What a fit says, in numbers and in words."""
