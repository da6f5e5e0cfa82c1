"""The deterministic functions of a protocol: what they are given, work on and leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.protocol.model import Output
from eop.protocol.shapes import Field, integer, listing

if TYPE_CHECKING:
    from collections.abc import Mapping

_SEEDS = Field(listing(integer(0, 2**31 - 1)), required=True)


@dataclass(frozen=True)
class Signature:
    """A function's contract.

    ``arguments`` are the typed keys of ``with``; ``after`` are functions that must run before it;
    ``patch`` says that it works on a patch; ``join`` that it works on joined branches;
    ``leaves`` are the artifacts it writes, which its phase must declare.
    """

    leaves: tuple[Output, ...]
    arguments: Mapping[str, Field] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    patch: bool = False
    join: bool = False


FUNCTIONS: Mapping[str, Signature] = MappingProxyType(
    {
        "baseline": Signature((Output("baseline", "baseline.json"),), {"seeds": _SEEDS}),
        "preflight": Signature((Output("preflight", "preflight.json", "preflight"),), patch=True),
        "train": Signature(
            (Output("checkpoint", "checkpoint.json", "checkpoint"),),
            {"seeds": _SEEDS},
            after=("preflight",),
        ),
        "evaluate": Signature((Output("metrics", "metrics.json", "metrics"),), after=("train",)),
        "promote": Signature(
            (Output("decision", "decision.json", "decision"),),
            after=("baseline", "evaluate"),
            join=True,
        ),
        "publish": Signature((Output("rows", "rows.json"),), after=("promote",)),
    }
)

# Functions that a dual pattern may run on a patch before each review.
CHECKS = ("preflight",)
