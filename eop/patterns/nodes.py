"""The nodes of a pattern: each runs at most once to its commit, however often it is asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from eop.agents import patch, workspace
from eop.agents.contract import Expected, Mode, Request, Status, Turn
from eop.agents.invoke import invoke
from eop.agents.orphaned import settle
from eop.agents.retry import RETRIES, wait_s
from eop.core.canonical import digest, file_digest
from eop.core.errors import EopError, Where
from eop.core.files import read_json, write_bytes, write_json
from eop.patterns import attempts
from eop.patterns.ledger import Ledger, total
from eop.patterns.outcomes import OUTCOMES, StoppedError
from eop.patterns.prompt import values
from eop.patterns.task import EXPERIMENT_OUTPUT, Task
from eop.patterns.together import together
from eop.protocol.patterns import PATTERNS
from eop.runtime.node import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from eop.agents.contract import Product
    from eop.patterns.attempts import Attempt, Committed
    from eop.patterns.ledger import Share


@dataclass(frozen=True)
class Work:
    """One node to be run: who does it, on which tree, with what, and what must come of it.

    ``turn`` is the round of a review loop. ``prompt`` tells it what to do, that of its role unless
    named. ``product`` plays the role where several take turns,
    ``part`` is the id of a worker's part. A node that may change nothing is done without a change.
    """

    role: str
    tree: str
    inputs: Mapping[str, Path]
    outputs: Sequence[Expected] = ()
    mode: Mode = Mode.READ_ONLY
    turn: int = 1
    product: str | None = None
    part: str | None = None
    may_change_nothing: bool = False
    prompt: str | None = None


@dataclass(frozen=True)
class _Node:
    """A work in its place: the node's folder, and its share of the budget among several at once."""

    work: Work
    folder: Path
    product: Product
    share: Share | None = None


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
        self.ledger = Ledger(task.phase, task.limits)
        self._index = 0

    @property
    def usage(self) -> Usage:
        """All that was spent so far, attempts that came to nothing included."""
        return self.ledger.usage

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

    def agent(self, work: Work) -> Committed:
        """Run a node, with retries, to its commit.

        Raises ``StoppedError`` when no attempt succeeds.
        """
        return self._run(self._placed(work))

    def together(
        self, works: Sequence[Work], *, at_once: int, kept: int
    ) -> list[Committed | StoppedError]:
        """Run several nodes, ``at_once`` at a time; how each ended, in their order.

        Each has an equal share of what the budgets still allow; ``kept`` shares of the same size
        are left to the nodes that follow.
        """
        nodes = [self._placed(work) for work in works]
        roles = {node.folder.name: node.work.role for node in nodes}
        shares = self.ledger.shares(roles, kept=kept)
        placed = [replace(node, share=share) for node, share in zip(nodes, shares, strict=True)]
        return together([partial(self._ended, node) for node in placed], at_once)

    def _ended(self, node: _Node) -> Committed | StoppedError:
        try:
            return self._run(node)
        except StoppedError as stopped:
            return stopped

    def _run(self, node: _Node) -> Committed:
        work, role = node.work, node.work.role
        request = self._request(node)
        identity = self._identity(request, work.inputs)
        done = attempts.committed(node.folder, identity)
        if done is not None:
            self.ledger.charge(role, done.usage, node.share)
            return done
        tries = attempts.earlier(node.folder, node.product)
        for one in tries:
            self.ledger.charge(role, one.usage, node.share)
            if one.status is None:
                settle(one.directory)
        attempt = self._until_accepted(tries, node, request, identity)
        return attempts.commit(
            node.folder,
            identity,
            attempt.tree or work.tree,
            dict(attempt.outputs),
            total(one.usage for one in tries),
            role=role,
            product=node.product.name,
            attempt=attempt.directory.name,
            status=str(attempt.status),
        )

    def _until_accepted(
        self, tries: list[Attempt], node: _Node, request: Request, identity: str
    ) -> Attempt:
        """Add attempts to ``tries`` until one is accepted, none may follow, or all are spent."""
        role, work = node.work.role, node.work
        accepted = {Status.OK, *([Status.NO_CHANGE] if work.may_change_nothing else [])}
        while True:
            judged = [a for a in tries if a.identity == identity and a.status is not None]
            last = judged[-1] if judged else None
            if last and last.status in accepted:
                return last
            if last and last.status:
                alike = sum(one.status is last.status for one in judged)
                spent_all = len(judged) >= self.ledger.attempts(role)
                if spent_all or alike > RETRIES[last.status].most:
                    reason = f"{role}: {last.status}: {last.reason.detail}"
                    raise StoppedError(OUTCOMES[last.status], reason, last.tree)
                time.sleep(wait_s(last.status, alike))
            limits = self.ledger.limits(role, node.share, last.tree if last else None)
            number = replace(request.turn, attempt=len(judged) + 1)
            directory = attempts.next_directory(node.folder)
            _, priors = workspace.create(
                directory, self.store, request.base, work.inputs, request.task
            )
            attempts.begin(directory, identity, node.product.name)
            invoke(
                node.product,
                replace(
                    request,
                    turn=number,
                    directory=directory,
                    inputs=priors,
                    limits=limits,
                    key=identity,
                ),
                self.task.jail,
                self.task.prices,
            )
            tries.append(attempts.load(directory, node.product))
            self.ledger.charge(role, tries[-1].usage, node.share)

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
        self.ledger.charge("check", done.usage)
        return done

    def _next_folder(self, role: str) -> Path:
        self._index += 1
        return self.folder / f"{self._index:02d}-{role}"

    def _placed(self, work: Work) -> _Node:
        """The node's folder is named by its place in the pattern, not by when it ends."""
        name = work.product or self.task.phase.nodes[work.role]
        return _Node(work, self._next_folder(work.role), self.task.products[name])

    def _request(self, node: _Node) -> Request:
        task, work = self.task, node.work
        tools = [t for t in task.phase.tools if work.mode is Mode.WRITE or t != "edit"]
        editable = task.target.editable if work.mode is Mode.WRITE else ()
        names = [f"{name}{path.suffix}" for name, path in sorted(work.inputs.items())]
        return Request(
            turn=Turn(
                run=task.run,
                node=task.node,
                phase=task.phase.id,
                role=work.role,
                iteration=task.iteration,
                round=work.turn,
                proposal=task.item.get("slug") if task.item else None,
                part=work.part,
            ),
            product=node.product.name,
            task=task.prompts[work.prompt or work.role].render(
                values(
                    task.prompt,
                    role=work.role,
                    mode=work.mode,
                    editable=editable,
                    inputs=names,
                    outputs=work.outputs,
                )
            ),
            directory=node.folder,
            store=self.store,
            base=work.tree,
            mode=work.mode,
            editable=editable,
            capabilities=tuple(tools),
            limits=task.limits,
            outputs=tuple(work.outputs),
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


def expected(task: Task) -> list[Expected]:
    """The files that a task's agents must leave: outputs less those that the runtime makes."""
    made = {EXPERIMENT_OUTPUT, *PATTERNS[task.phase.pattern or ""].makes}
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
