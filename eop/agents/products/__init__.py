"""One adapter per agent product."""
