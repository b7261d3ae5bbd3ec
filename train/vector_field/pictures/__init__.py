"""Pictures, films and scenes of vector fields."""
