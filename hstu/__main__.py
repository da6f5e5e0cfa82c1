"""``python -m hstu``."""

from hstu.cli import main

main()
