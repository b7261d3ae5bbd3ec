"""Pictures and tables of a colony on its ground."""
