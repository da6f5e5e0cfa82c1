"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.child import ROOT


def machine() -> dict[str, str]:
    """Processor, memory, load, versions and revision, as text."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "load": ", ".join(f"{load:.1f}" for load in os.getloadavg()),
        "Python": platform.python_version(),
        "torch": version("torch"),
        "revision": _revision(),
    }


def _processor() -> str:
    """The model's name with its widest vectors, or the architecture where Linux does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    known = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in known.items()}
    flags = facts.get("flags", "").split()
    vectors = [name for flag, name in _VECTORS.items() if flag in flags][:1]
    return ", ".join([facts.get("model name", platform.machine()), *vectors])


_VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
