"""Models of recorded data: files, fits, forecasts and their scores."""
