"""A first look at recorded data, before anything is fitted: what they hold, what looks broken."""
