"""How a training computes, as opposed to what: none of it is part of the experiment.

It changes numbers in their last digits (``precision``: in their third), so snapshots and
checkpoints name it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from hstu.kernels import implementation

if TYPE_CHECKING:
    from hstu.models import Hstu

Precision = Literal["float32", "bf16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
_TYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Runtime:
    """Where and how exactly a model is trained.

    ``device`` is a name for ``choose_device``. With ``precision`` bf16 the matrix products of the
    encoder are bfloat16; parameters, norms, the attention's bias, the residual stream and the loss
    stay float32. ``compile`` has ``torch.compile`` make the blocks of
    torch's form, in place of the kernels written for it.
    """

    device: str = "auto"
    precision: Precision = "float32"
    compile: bool = False

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
