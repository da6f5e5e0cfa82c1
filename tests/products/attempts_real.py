"""Attempts of real products at a small task, with a scripted model as their only endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kits import MODEL
from scripted_model import Call, Part, Say, Script, ScriptedModel, Tokens

from eop.agents import patch, workspace
from eop.agents.contract import Endpoint, Limits, Mode, Request, Result, Turn
from eop.agents.invoke import invoke
from eop.agents.jail import Jail, choose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from kits import Kit
    from scripted_model import Asked, Fault

    Steps = Sequence[Say | Fault | Callable[[Asked], Say]]

TOKEN = "run-token-7c1f09"
TASK = "Set a to 2 in models/a.py.\n"
FILES = {"models/a.py": "a = 1\n", "judge.py": "j = 1\n"}
LIMITS = Limits(wall_s=300, idle_s=120, grace_s=1)
BEST = choose("require", trusted=False)


@dataclass(frozen=True)
class Done:
    """What came of an attempt: the result, what the model was asked, where it all lies."""

    result: Result
    model: ScriptedModel
    folder: Path

    @property
    def spent(self) -> tuple[int, int]:
        """Tokens in and out, as the model's side has them."""
        said = self.model.said
        return sum(s.tokens.input for s in said), sum(s.tokens.output for s in said)

    def tree(self) -> dict[str, str]:
        """The files of the resulting tree."""
        assert self.result.patch is not None
        out = self.folder / "tree"
        patch.export(self.folder / "store.git", self.result.patch.tree, out)
        return {str(p.relative_to(out)): p.read_text() for p in out.rglob("*") if p.is_file()}


def attempt(
    kit: Kit,
    folder: Path,
    steps: Callable[[workspace.Workspace], Steps],
    *,
    jail: Jail = BEST,
    files: Mapping[str, str] = FILES,
    task: str = TASK,
    token: str = TOKEN,
    **changes: Any,
) -> Done:
    """Run a product on a small tree; ``changes`` are fields of the request."""
    base = folder / "base"
    for name, text in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    store = patch.init_store(folder / "store.git")
    tree = patch.commit_tree(store, base)
    space, priors = workspace.create(folder / "attempt", store, tree, {}, task)
    values: dict[str, Any] = {
        "turn": Turn("run", "it01_implement", "implement", "implementer", 1),
        "product": kit.name,
        "task": task,
        "directory": space.directory,
        "store": store,
        "base": tree,
        "mode": Mode.WRITE,
        "editable": ("models/**",),
        "capabilities": ("read", "edit", "shell"),
        "limits": LIMITS,
        "inputs": priors,
        "hidden": (store,),
    }
    with ScriptedModel(Script([Part(steps(space), when=(task.strip(),))]), TOKEN) as model:
        endpoint = Endpoint(model.url + kit.api, token)
        request = Request(**{"endpoint": endpoint, **values, **changes})
        return Done(invoke(kit.product(), request, jail), model, folder)


def change(kit: Kit, space: workspace.Workspace) -> Call:
    """The tool call that does what the task asks."""
    return kit.put(space.tree / "models/a.py", "a = 2\n")


def works(kit: Kit) -> Callable[[workspace.Workspace], Steps]:
    """The model does what the task asks, in two answers."""
    return lambda space: [
        Say("I write.", (change(kit, space),), Tokens(1200, 1000, 40)),
        Say("Done.", tokens=Tokens(1300, 1200, 12)),
    ]


__all__ = [
    "BEST",
    "FILES",
    "LIMITS",
    "MODEL",
    "TASK",
    "TOKEN",
    "Done",
    "attempt",
    "change",
    "works",
]
