"""Replay buffers on the device: uniform and prioritised draws."""
