"""What every rule's script needs: its log, and errors that read as sentences."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def rule(snakemake: Any) -> Iterator[Path]:
    """Send all output of a script, its children's included, to the rule's log.

    Gives the project's root. An ``EopError`` becomes one message in the log and the script's exit
    status; any other exception keeps its traceback, since it is a fault of the program.
    """
    log = Path(str(snakemake.log))
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream:
        os.dup2(stream.fileno(), sys.stdout.fileno())
        os.dup2(stream.fileno(), sys.stderr.fileno())
    try:
        yield Path.cwd()
    except EopError as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(int(error.exit_code))
