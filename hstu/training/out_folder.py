"""A folder that holds another experiment's model is not written over by mistake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hstu.data.errors import ExitCode, HstuError
from hstu.data.files import read_json
from hstu.models import withdraw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hstu.training.snapshot import Snapshot

# What makes it another experiment; threads, torch and the device are of the machine.
_EXPERIMENT = ("config", "seed", "data", "start")


def make_way(snapshot: Snapshot, *, replace: bool) -> None:
    """Take back the finished model in the folder of ``snapshot``, before it is trained there.

    Without ``replace``, ``HstuError`` when the model is not of the snapshot's identity, or the
    epochs of an interrupted training are not.
    """
    if not replace:
        _require_own(snapshot)
    withdraw(snapshot.path.parent)


def _require_own(snapshot: Snapshot) -> None:
    side_car = snapshot.path.with_name("checkpoint.json")
    known = {
        "a model": read_json(side_car) if side_car.is_file() else None,
        "an interrupted training": snapshot.identity_there(),
    }
    for what, found in known.items():
        differing = _differing(found, snapshot.identity) if found is not None else []
        if differing:
            raise HstuError(
                f"the folder holds {what} of another experiment ({', '.join(differing)} differs)",
                where=str(snapshot.path.parent),
                hint="name another --out, or add --force to replace it",
                exit_code=ExitCode.USAGE,
            )


def _differing(found: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    # As it is written, a tuple is a list.
    plain: dict[str, Any] = json.loads(json.dumps(dict(own)))
    written: dict[str, Any] = json.loads(json.dumps(dict(found)))
    return [name for name in _EXPERIMENT if written.get(name) != plain.get(name)]
