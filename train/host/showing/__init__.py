"""Pictures, films and episodes that every program shares."""
