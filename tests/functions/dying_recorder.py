"""`record` in a process that kills itself with SIGKILL at the next step it was not yet killed at.

    python dying_recorder.py ROOT LOG

A step is a program about to be started, one that has just been, the first read of an object in the
cache or at the remote, or a file about to get its name. Those done with are lines of LOG.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from eop.functions.record import record

ROOT, LOG = Path(sys.argv[1]), Path(sys.argv[2])
# Less than DVC takes to start.
_IN_THE_MIDST_S = 0.3


def _die(step: str) -> None:
    if step in LOG.read_text().splitlines():
        return
    with LOG.open("a") as log:
        log.write(f"{step}\n")
    os.kill(os.getpid(), signal.SIGKILL)


def _watch(event: str, given: tuple[object, ...]) -> None:
    if event == "subprocess.Popen":
        words = [str(word) for word in given[1]]
        if words[0] == "git":
            _die(f"before git {words[1]}")
        elif "dvc" in words:
            name = f"dvc {words[words.index('--wait-for-lock') + 1]}"
            _die(f"before {name}")
            threading.Timer(_IN_THE_MIDST_S, _die, [f"in the midst of {name}"]).start()
    elif event == "open" and "files/md5" in str(given[0]):
        _die(f"reading {'cache' if '.dvc/cache' in str(given[0]) else 'remote'}")
    elif event == "os.rename":
        path = Path(str(given[1])).relative_to(ROOT)
        # Of a folder's files one stands for all, but DVC's list comes last.
        _die(f"naming {path if path.name in ('dvc.yaml', 'recorded.json') else path.parent}")


if __name__ == "__main__":
    sys.addaudithook(_watch)
    record(ROOT, "r1", "it01")
    # A timer that still runs is of a program that has ended.
    os._exit(0)
