"""The pattern ``bta``: break the work down, let workers do the parts, aggregate what they leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Expected
from eop.core.canonical import canonical_json, file_digest
from eop.core.errors import EopError, ExitCode
from eop.core.files import dumps, read_json
from eop.core.schema import problems
from eop.patterns import joined
from eop.patterns.deliver import deliver
from eop.patterns.nodes import Work, expected, schema_of
from eop.patterns.outcomes import StoppedError
from eop.protocol.patterns import AGGREGATE, WORKER, WORKERS_OUTPUT
from eop.runtime.node import NodeResult, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.patterns.nodes import Nodes
    from eop.protocol.model import Workers

_PARTS = "parts"


@dataclass
class _Worker:
    """How one worker ended; ``left`` are its outputs by name, ``dropped`` what others had too."""

    part: dict[str, Any]
    product: str
    outcome: Outcome
    reason: str = ""
    left: dict[str, Path] = field(default_factory=dict)
    dropped: dict[str, list[str]] = field(default_factory=dict)

    @property
    def completed(self) -> bool:
        return self.outcome is Outcome.COMPLETED

    def record(self) -> dict[str, Any]:
        return {
            "part": self.part["id"],
            "product": self.product,
            "outcome": str(self.outcome),
            "reason": self.reason,
            "outputs": {name: file_digest(path) for name, path in self.left.items()},
            "dropped": self.dropped,
        }


class Bta:
    """One run: the parts, how each worker ended, and the outputs as they stand.

    Workers read, they change nothing; what they leave are versions of the phase's outputs.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.tree = nodes.base
        self.left: dict[str, Path] = {}
        self.asked = expected(nodes.task)
        self.workers: list[_Worker] = []

    def run(self) -> NodeResult:
        """Break down, work, aggregate. Raises ``StoppedError`` when a node cannot go on.

        A worker that fails is a row of the record, in the order of the parts, whoever ends first;
        the phase has failed when fewer have completed than the protocol asks for.
        """
        nodes, bounds = self.nodes, self._bounds()
        self.workers = self._work(self._parts(bounds), bounds)
        self._keep_record()
        self._require_enough(bounds)
        aggregated = self._agent() if AGGREGATE in nodes.task.phase.nodes else self._function()
        self.left.update(aggregated)
        self._keep_record()
        failed = sum(not worker.completed for worker in self.workers)
        reason = f"{failed} of {len(self.workers)} workers did not complete" if failed else ""
        return NodeResult(Outcome.COMPLETED, reason, self.artifacts(self.tree), nodes.usage)

    def artifacts(self, tree: str) -> dict[str, Path]:
        """The outputs as far as they have come; how the workers ended is one of them."""
        return deliver(self.nodes, tree, self.left)

    def _bounds(self) -> Workers:
        phase = self.nodes.task.phase
        if phase.workers is None:
            message = f"phase '{phase.id}' has no workers"
            raise EopError("EOP886", message, exit_code=ExitCode.PROTOCOL)
        return phase.workers

    def _parts(self, bounds: Workers) -> list[dict[str, Any]]:
        nodes = self.nodes
        schema = {**(schema_of(nodes.task, _PARTS) or {}), "maxItems": bounds.max}
        asked = Expected(_PARTS, "parts.json", schema)
        done = nodes.agent(Work("breakdown", self.tree, nodes.given(), [asked]))
        parts: list[dict[str, Any]] = read_json(done.outputs[_PARTS])
        ids = [part["id"] for part in parts]
        if len(set(ids)) < len(ids):
            twice = sorted({one for one in ids if ids.count(one) > 1})
            raise StoppedError(Outcome.FAILED, f"breakdown: two parts are named {twice[0]}")
        return parts

    def _work(self, parts: list[dict[str, Any]], bounds: Workers) -> list[_Worker]:
        nodes = self.nodes
        products = [bounds.products[i % len(bounds.products)] for i in range(len(parts))]
        works = [
            Work(
                WORKER,
                self.tree,
                {**nodes.given(), "part": nodes.keep("part.json", canonical_json(part))},
                self.asked,
                product=product,
                part=part["id"],
            )
            for part, product in zip(parts, products, strict=True)
        ]
        kept = int(AGGREGATE in nodes.task.phase.nodes)
        ended = nodes.together(works, at_once=bounds.concurrency, kept=kept)
        return [
            _Worker(part, product, end.outcome, end.reason)
            if isinstance(end, StoppedError)
            else _Worker(part, product, Outcome.COMPLETED, left=end.outputs)
            for part, product, end in zip(parts, products, ended, strict=True)
        ]

    def _require_enough(self, bounds: Workers) -> None:
        failed = [worker for worker in self.workers if not worker.completed]
        completed = len(self.workers) - len(failed)
        if completed >= bounds.at_least:
            return
        alike = {worker.outcome for worker in failed}
        outcome = alike.pop() if len(alike) == 1 else Outcome.FAILED
        why = "; ".join(f"{worker.part['id']}: {worker.reason}" for worker in failed)
        counted = f"{completed} of {len(self.workers)} workers completed"
        raise StoppedError(outcome, f"{counted}, {bounds.at_least} are needed: {why}")

    def _agent(self) -> dict[str, Path]:
        """Aggregated by an agent, from the record and all that completed workers left."""
        nodes = self.nodes
        # No artifact has a '-' in its name, so none of them can be taken for a worker's.
        drafts = {
            f"worker-{number:02d}-{worker.part['id']}-{name}": path
            for number, worker in enumerate(self.workers, 1)
            for name, path in worker.left.items()
        }
        given = {**nodes.given(), **drafts, WORKERS_OUTPUT: self.left[WORKERS_OUTPUT]}
        return nodes.agent(Work(AGGREGATE, self.tree, given, self.asked)).outputs

    def _function(self) -> dict[str, Path]:
        """Lists joined in the order of the parts."""
        made = {}
        for output in self.asked:
            owners = [worker for worker in self.workers if worker.completed]
            lists = [read_json(worker.left[output.name]) for worker in owners]
            items, dropped = joined.join(lists)
            for worker, names in zip(owners, dropped, strict=True):
                if names:
                    worker.dropped[output.name] = names
            wrong = problems(items, output.schema or {"type": "array"})
            if wrong:
                reason = f"joined {output.file}: {'; '.join(wrong)}"
                raise StoppedError(Outcome.FAILED, reason)
            made[output.name] = self.nodes.keep(output.file, dumps(items).encode())
        return made

    def _keep_record(self) -> None:
        record = {"schema": "workers/1", "workers": [one.record() for one in self.workers]}
        self.left[WORKERS_OUTPUT] = self.nodes.keep("workers.json", dumps(record).encode())
