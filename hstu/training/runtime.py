"""How a training computes, as opposed to what: none of it is part of the experiment.

It changes numbers in their last digits (``precision``: in their third), so snapshots and
checkpoints name it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from hstu.data.errors import ExitCode, HstuError
from hstu.kernels import implementation

if TYPE_CHECKING:
    from hstu.models import Hstu

Precision = Literal["float32", "bf16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
_TYPES = {"float32": torch.float32, "bf16": torch.bfloat16}
_CUDA = re.compile(r"cuda(:\d+)?")


@dataclass(frozen=True)
class Runtime:
    """Where and how exactly a model is trained.

    ``device`` is auto (CUDA where there is one), cpu, cuda or cuda:N. With ``precision`` bf16 the
    matrix products of the encoder are bfloat16; parameters, norms, the attention's bias, the
    residual stream and the loss stay float32. ``compile`` has ``torch.compile`` make the blocks of
    torch's form, in place of the kernels written for it.
    """

    device: str = "auto"
    precision: Precision = "float32"
    compile: bool = False

    def choose_device(self) -> torch.device:
        """The device, which becomes CUDA's current one.

        A process that torchrun started takes the GPU of its number on the machine. Raises
        ``HstuError`` for a name that is none, and when CUDA is asked for and there is none.
        """
        if self.device not in ("auto", "cpu") and not _CUDA.fullmatch(self.device):
            raise _error(f"there is no device {self.device!r}", "use auto, cpu, cuda or cuda:N")
        available = torch.cuda.device_count()
        if self.device == "cpu" or (self.device == "auto" and not available):
            return torch.device("cpu")
        local = os.environ.get("LOCAL_RANK")
        if ":" in self.device and local is not None:
            raise _error(
                f"{self.device} is one GPU, and torchrun started several processes",
                "use --device cuda: each process takes its own",
            )
        number = int(self.device.partition(":")[2] or local or 0)
        if number >= available:
            raise _error(
                f"PyTorch sees no CUDA device number {number}, of {available} in all",
                "use --device cpu, fewer processes, or a PyTorch built for the machine's GPU",
            )
        # Without it cuBLAS refuses to work deterministically.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.cuda.set_device(number)
        return torch.device("cuda", number)

    def prepare(self, model: Hstu) -> None:
        """Give the model its precision, and have its blocks compiled when first called."""
        model.products = _TYPES[self.precision]
        if self.compile:
            for block in model.blocks:
                block.compile(dynamic=True)

    def to_json(self, device: torch.device, processes: int) -> dict[str, Any]:
        """What a run's numbers depend on beside experiment, data, seed and threads."""
        return {
            "device": device.type,
            "kernels": "torch" if self.compile else implementation(device),
            "precision": self.precision,
            "compile": self.compile,
            "processes": processes,
        }


DEFAULT = Runtime()


def repeat_exactly(threads: int) -> None:
    """Make torch compute the same bits again, with this number of threads."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    # Nothing here reads what it has not written; filling every new tensor costs a twentieth.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def _error(message: str, hint: str) -> HstuError:
    return HstuError(message, where="--device", hint=hint, exit_code=ExitCode.ENVIRONMENT)
