"""Agents and networks that wrap others: normalisation, self-play, cropped graphs."""
