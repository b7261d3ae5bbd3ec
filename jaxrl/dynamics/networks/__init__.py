"""Networks of the sequence VAE: recognition, fields, decoders, its filter and information."""
