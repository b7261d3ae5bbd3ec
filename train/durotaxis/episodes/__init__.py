"""Recorded episodes of colonies, as arrays and tables."""
