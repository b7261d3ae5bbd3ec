"""Environments that programs learn in: by name, or of a file of a user's own."""
