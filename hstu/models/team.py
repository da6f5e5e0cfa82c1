"""The processes that train or evaluate one model together, as ``torchrun`` starts them.

Each holds the whole model and a share of the users. What torchrun calls a rank is called a member
here: a rank is the place of a target in a list.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, distributed

from hstu.data.errors import ExitCode, HstuError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Team:
    """One member's view: its number from 0, how many there are, where they exchange tensors."""

    member: int = 0
    members: int = 1
    device: str = "cpu"

    @property
    def alone(self) -> bool:
        """Whether this process does everything."""
        return self.members == 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.member == 0

    def span(self, count: int) -> range:
        """This member's of ``count`` things in order; the members' spans follow each other."""
        return range(count * self.member // self.members, count * (self.member + 1) // self.members)

    def add(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over the members."""
        if not self.alone:
            _exchange(lambda: distributed.all_reduce(tensor))

    def total(self, *numbers: float) -> list[float]:
        """The sum of each number over the members, in double precision."""
        if self.alone:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        self.add(tensor)
        return [float(number) for number in tensor.tolist()]

    def gather(self, found: _Made) -> list[_Made]:
        """What each member found, in the order of the members, for all of them."""
        if self.alone:
            return [found]
        parts: list[_Made | None] = [None] * self.members
        _exchange(lambda: distributed.all_gather_object(parts, found))
        return [part for part in parts if part is not None]


ALONE = Team()


def started_by_torchrun() -> bool:
    """Whether the environment says that this process is one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined(device: torch.device) -> Iterator[Team]:
    """The team that torchrun's environment describes, which computes on ``device``; or ``ALONE``.

    Members talk by NCCL where they compute on CUDA, by gloo elsewhere.
    """
    if not started_by_torchrun():
        yield ALONE
        return
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Team(distributed.get_rank(), distributed.get_world_size(), str(device))
    finally:
        distributed.destroy_process_group()


def _exchange(work: Callable[[], object]) -> None:
    """Call ``work``, which fails when another member has gone."""
    try:
        work()
    except RuntimeError as error:
        raise HstuError(
            f"another process of the run has ended: {error}",
            where="torch.distributed",
            hint="see its message; the same command goes on from the last snapshot",
            exit_code=ExitCode.FAILURE,
        ) from error
