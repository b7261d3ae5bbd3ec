"""Models of recorded data: fits, forecasts and their scores."""
