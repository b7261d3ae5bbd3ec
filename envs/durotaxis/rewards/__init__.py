"""The rewards of a colony: named components, in sets."""
