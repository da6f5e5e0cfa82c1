"""Where a model computes, by name."""

from __future__ import annotations

import os
import re

import torch

from hstu.data.errors import ExitCode, HstuError

_CUDA = re.compile(r"cuda(:\d+)?")


def choose_device(name: str) -> torch.device:
    """The device of this name, which becomes CUDA's current one.

    ``name`` is auto (CUDA where there is one), cpu, cuda or cuda:N. A process that torchrun started
    takes the GPU of its number on the machine. Raises ``HstuError`` for a name that is none, and
    when CUDA is asked for and there is none.
    """
    if name not in ("auto", "cpu") and not _CUDA.fullmatch(name):
        raise _error(f"there is no device {name!r}", "use auto, cpu, cuda or cuda:N")
    available = torch.cuda.device_count()
    if name == "cpu" or (name == "auto" and not available):
        return torch.device("cpu")
    local = os.environ.get("LOCAL_RANK")
    if ":" in name and local is not None:
        raise _error(
            f"{name} is one GPU, and torchrun started several processes",
            "use --device cuda: each process takes its own",
        )
    number = int(name.partition(":")[2] or local or 0)
    if number >= available:
        raise _error(
            f"PyTorch sees no CUDA device number {number}, of {available} in all",
            "use --device cpu, fewer processes, or a PyTorch built for the machine's GPU",
        )
    # Without it cuBLAS refuses to work deterministically.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


def _error(message: str, hint: str) -> HstuError:
    return HstuError(message, where="--device", hint=hint, exit_code=ExitCode.ENVIRONMENT)
