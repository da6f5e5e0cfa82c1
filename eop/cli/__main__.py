"""``python -m eop.cli``: the same as the command ``eop``."""

from eop.cli import main

main()
