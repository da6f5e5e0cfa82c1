"""Other implementations of the same network, measured on the same data in the same call."""
