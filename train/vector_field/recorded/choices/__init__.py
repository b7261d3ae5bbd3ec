"""What files do not say of a state-space model, chosen by how well it forecasts or fits."""
