"""The nodes of a pattern: each runs at most once to its commit, however often it is asked for."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eop.agents import patch, workspace
from eop.agents.contract import Expected, Mode, Request, Status, Turn
from eop.agents.invoke import invoke
from eop.agents.retry import RETRIES, wait_s
from eop.core.canonical import digest, file_digest
from eop.core.errors import EopError, Where
from eop.core.files import read_json, write_bytes, write_json
from eop.patterns import attempts
from eop.patterns.prompt import compose
from eop.patterns.task import EXPERIMENT_OUTPUT, Task
from eop.protocol.model import UNITS
from eop.runtime.node import Outcome, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from eop.agents.contract import Limits, Product
    from eop.patterns.attempts import Attempt, Committed
    from eop.protocol.model import Budget

_OUTCOMES = {
    Status.SETUP_ERROR: Outcome.BLOCKED,
    Status.CANCELLED: Outcome.FAILED,
    Status.TIMEOUT: Outcome.TIMED_OUT,
    Status.POLICY_VIOLATION: Outcome.TAMPERED,
    Status.BUDGET_EXHAUSTED: Outcome.BUDGET_EXHAUSTED,
    Status.TRANSIENT_ERROR: Outcome.FAILED,
    Status.AUTH_ERROR: Outcome.BLOCKED,
    Status.QUOTA_EXHAUSTED: Outcome.BLOCKED,
    Status.CONFIG_ERROR: Outcome.BLOCKED,
    Status.REFUSED: Outcome.FAILED,
    Status.CONTEXT_OVERFLOW: Outcome.FAILED,
    Status.STUCK: Outcome.FAILED,
    Status.INVALID_OUTPUT: Outcome.FAILED,
    Status.BLOCKED: Outcome.BLOCKED,
    Status.NO_CHANGE: Outcome.FAILED,
}


class StoppedError(Exception):
    """The pattern cannot go on; ``tree`` is what its agents had made, kept as evidence."""

    def __init__(self, outcome: Outcome, reason: str, tree: str | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.tree = tree


class Nodes:
    """Runs a task's nodes in order and keeps count of what they spend.

    ``store`` and ``base`` are the runtime's git store and the tree that the task starts from.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.folder = task.directory / "work"
        self.store = patch.init_store(self.folder / "store.git")
        self.base = patch.commit_tree(self.store, task.base)
        self.snapshot = patch.commit_tree(self.store, task.snapshot)
        self._spent: list[tuple[str, Usage]] = []
        self._index = 0

    @property
    def usage(self) -> Usage:
        """All that was spent so far, attempts that came to nothing included."""
        return attempts.total(usage for _, usage in self._spent)

    def given(self) -> dict[str, Path]:
        """The task's inputs, with the branch's item as ``item`` (JSON)."""
        if self.task.item is None:
            return dict(self.task.inputs)
        path = self.folder / "item.json"
        write_json(path, self.task.item)
        return {**self.task.inputs, "item": path}

    def keep(self, name: str, content: bytes) -> Path:
        """A file that the runtime hands to a node, named by its content."""
        stem, _, suffix = name.partition(".")
        path = self.folder / "given" / f"{stem}-{digest(content.hex())[:16]}.{suffix}"
        write_bytes(path, content)
        return path

    def agent(
        self,
        role: str,
        tree: str,
        *,
        mode: Mode,
        inputs: Mapping[str, Path],
        outputs: Sequence[Expected],
        turn: int = 1,
        may_change_nothing: bool = False,
    ) -> Committed:
        """Run the product that plays ``role`` on ``tree``, with retries, to its commit.

        ``turn`` is the round of a review loop. Raises ``StoppedError`` when no attempt succeeds.
        """
        folder = self._next_folder(role)
        product = self._product(role)
        request = self._request(role, tree, mode, inputs, outputs, turn, product, folder)
        identity = self._identity(request, inputs)
        done = attempts.committed(folder, identity)
        if done is not None:
            self._spent.append((role, done.usage))
            return done
        accepted = {Status.OK, *([Status.NO_CHANGE] if may_change_nothing else [])}
        tries = attempts.earlier(folder, product)
        self._spent += [(role, attempt.usage) for attempt in tries]
        attempt = self._until_accepted(tries, accepted, request, identity, inputs, folder)
        return attempts.commit(
            folder,
            identity,
            attempt.tree or tree,
            dict(attempt.outputs),
            attempts.total(one.usage for one in tries),
            role=role,
            product=product.name,
            attempt=attempt.directory.name,
            status=str(attempt.status),
        )

    def _until_accepted(
        self,
        tries: list[Attempt],
        accepted: set[Status],
        request: Request,
        identity: str,
        inputs: Mapping[str, Path],
        folder: Path,
    ) -> Attempt:
        """Add attempts to ``tries`` until one is accepted, none may follow, or all are spent."""
        role = request.turn.role
        while True:
            judged = [a for a in tries if a.identity == identity and a.status is not None]
            last = judged[-1] if judged else None
            if last and last.status in accepted:
                return last
            if last and last.status:
                alike = sum(one.status is last.status for one in judged)
                spent_all = len(judged) >= self._budget(role).attempts
                if spent_all or alike > RETRIES[last.status].most:
                    reason = f"{role}: {last.status}: {last.reason.detail}"
                    raise StoppedError(_OUTCOMES[last.status], reason, last.tree)
                time.sleep(wait_s(last.status, alike))
            limits = self._remaining(role, last.tree if last else None)
            number = replace(request.turn, attempt=len(judged) + 1)
            directory = attempts.next_directory(folder)
            _, priors = workspace.create(directory, self.store, request.base, inputs, request.task)
            attempts.begin(directory, identity)
            product = self._product(role)
            invoke(
                product,
                replace(
                    request,
                    turn=number,
                    directory=directory,
                    inputs=priors,
                    limits=limits,
                    key=identity,
                ),
                self.task.jail,
            )
            tries.append(attempts.load(directory, product))
            self._spent.append((role, tries[-1].usage))

    def check(self, tree: str) -> Committed | None:
        """Run the task's check on ``tree``; its report is the output ``check``, ``None`` without.

        ``facts["passed"]`` of what is returned says how it ended.
        """
        if self.task.check is None:
            return None
        folder = self._next_folder("check")
        identity = digest({"check": self.task.phase.check, "tree": tree})
        done = attempts.committed(folder, identity)
        if done is None:
            directory = attempts.next_directory(folder)
            (directory / "out").mkdir(parents=True)
            patch.export(self.store, tree, directory / "tree")
            started = time.monotonic()
            report = self.task.check(directory / "tree", directory / "out")
            usage = Usage(0, time.monotonic() - started, tokens=0, micro_usd=0)
            done = attempts.commit(
                folder, identity, tree, {"check": report}, usage, passed=_passed(report)
            )
        self._spent.append(("check", done.usage))
        return done

    def _next_folder(self, role: str) -> Path:
        self._index += 1
        return self.folder / f"{self._index:02d}-{role}"

    def _product(self, role: str) -> Product:
        nodes = self.task.phase.nodes
        return self.task.products[nodes.get(role) or nodes["implementer"]]

    def _request(
        self,
        role: str,
        tree: str,
        mode: Mode,
        inputs: Mapping[str, Path],
        outputs: Sequence[Expected],
        turn: int,
        product: Product,
        folder: Path,
    ) -> Request:
        task = self.task
        tools = [t for t in task.phase.tools if mode is Mode.WRITE or t != "edit"]
        editable = task.target.editable if mode is Mode.WRITE else ()
        names = [f"{name}{path.suffix}" for name, path in sorted(inputs.items())]
        return Request(
            turn=Turn(
                run=task.run,
                node=task.node,
                phase=task.phase.id,
                role=role,
                iteration=task.iteration,
                round=turn,
                proposal=task.item.get("slug") if task.item else None,
            ),
            product=product.name,
            task=compose(
                task.prompt,
                role=role,
                mode=mode,
                editable=editable,
                inputs=names,
                outputs=outputs,
            ),
            directory=folder,
            store=self.store,
            base=tree,
            mode=mode,
            editable=editable,
            capabilities=tuple(tools),
            limits=task.limits,
            outputs=tuple(outputs),
            hidden=task.hidden,
        )

    def _identity(self, request: Request, inputs: Mapping[str, Path]) -> str:
        return digest(
            {
                "product": request.product,
                "task": request.task,
                "base": request.base,
                "mode": request.mode,
                "round": request.turn.round,
                "outputs": [[output.name, output.file] for output in request.outputs],
                "inputs": {name: file_digest(path) for name, path in inputs.items()},
            }
        )

    def _budget(self, role: str) -> Budget:
        """What a role may spend in the phase: its own budget, else the phase's."""
        phase = self.task.phase
        return phase.node_budgets.get(role, phase.budget)

    def _remaining(self, role: str, tree: str | None) -> Limits:
        """What the budgets of phase and role still allow; unknown spending counts as all of it."""
        limits = self.task.limits
        own = attempts.total(usage for name, usage in self._spent if name == role)
        for whose, budget, spent in (
            ("the phase's", self.task.phase.budget, self.usage),
            (f"{role}'s", self._budget(role), own),
        ):
            for unit in UNITS.values():
                limit, used = getattr(budget, unit), getattr(spent, unit)
                if limit is None:
                    continue
                left = 0 if used is None else limit - used
                if left <= 0:
                    reason = f"{whose} budget of {unit} is spent"
                    raise StoppedError(Outcome.BUDGET_EXHAUSTED, reason, tree)
                limits = _bounded(limits, unit, left)
        return limits


def _bounded(limits: Limits, unit: str, left: float) -> Limits:
    """``limits`` with no more than ``left`` of a unit; products are told of dollars as such."""
    if unit == "micro_usd":
        unit, left = "usd", left / 1_000_000
    bound = getattr(limits, unit)
    changed: dict[str, Any] = {unit: left if bound is None else min(bound, left)}
    return replace(limits, **changed)


def expected(task: Task, skip: Sequence[str] = ()) -> list[Expected]:
    """The files that a task's agents must leave: outputs less patch, experiment, ``skip``."""
    made = {EXPERIMENT_OUTPUT, *skip}
    return [
        Expected(output.name, output.file, schema_of(task, output.schema))
        for output in task.phase.outputs
        if not output.patch and output.name not in made
    ]


def schema_of(task: Task, name: str | None) -> dict[str, Any] | None:
    """A schema of the task by name; ``EopError`` when there is none of this name."""
    if name is None:
        return None
    if name not in task.schemas:
        raise EopError("EOP881", f"phase '{task.phase.id}' names the unknown schema '{name}'")
    return task.schemas[name]


def _passed(report: Path) -> bool:
    passed = read_json(report).get("passed")
    if not isinstance(passed, bool):
        raise EopError(
            "EOP882", "a check's report must hold a boolean 'passed'", where=Where(str(report))
        )
    return passed
