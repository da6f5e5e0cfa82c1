"""Where a model is trained."""

from __future__ import annotations

from typing import Literal

import torch

from hstu.data.errors import ExitCode, HstuError

DeviceName = Literal["auto", "cpu", "cuda"]


def choose_device(name: DeviceName) -> torch.device:
    """The device of that name; ``auto`` is CUDA where there is one.

    Raises ``HstuError`` when CUDA is asked for and there is none.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise HstuError(
            "PyTorch sees no CUDA device",
            where="--device cuda",
            hint="use --device cpu, or install a PyTorch built for the machine's GPU",
            exit_code=ExitCode.ENVIRONMENT,
        )
    return torch.device("cuda" if name != "cpu" and available else "cpu")
