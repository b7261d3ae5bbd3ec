"""Files of tracks: tables of three kinds, and label images."""
