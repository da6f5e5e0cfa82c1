"""``torchrun``, ended with the status of the process that failed first; a program of its own.

torchrun itself ends with 1 whatever it was, and what a training's end means is read from its
status. It starts before the command, inside the jail: nothing but torch may be imported.
"""

from __future__ import annotations

import sys
import tempfile

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import parse_args, run

_INTERRUPTED = 130
_BY_SIGNAL = 128


def main(arguments: list[str]) -> int:
    """Run torchrun with these arguments; the status to end with."""
    with tempfile.TemporaryDirectory(prefix="torchrun-") as logs:
        try:
            options = parse_args(["--log-dir", logs, *arguments])  # type: ignore[no-untyped-call]
            run(options)  # type: ignore[no-untyped-call]
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            code = failure.exitcode
            return code if code >= 0 else _BY_SIGNAL - code
        except (SignalException, KeyboardInterrupt):
            return _INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
