"""Begin a run: pin what it is about, so that later edits of the project cannot change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import dumps, read_json, write_bytes, write_if_changed, write_json
from eop.driver.pinned import another_run, require_pins
from eop.functions.split import require_data
from eop.functions.trees import pin_snapshot
from eop.project.config import OF_MACHINES
from eop.runtime.migration import differences
from eop.runtime.signatures import SIGNERS_COPY, Signers, require_keygen
from eop.runtime.trace import Trace
from eop.runtime.witnesses import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eop.project.project import Project
    from eop.runtime.events import Event
    from eop.runtime.state import State


def open_run(project: Project) -> Trace:
    """The trace of the project's run; a new run is started, an old one must fit the project.

    Raises ``EopError`` (EOP710, EOP711) when the protocol or the workflow config has changed
    since the run began: a run never changes its procedure on the way. EOP712 when one of the
    run's own copies was edited, EOP713 when a new run would publish under used entry ids,
    EOP714 when the end of the trace is missing. EOP614 when nobody could sign an answer, EOP715
    when those who may sign are not those that the run began with. EOP630 when a new run would
    have no data: where they lie is pinned too.
    """
    trace = Trace(project.trace_dir, project.plan)
    signers = _signers(project)
    if trace.begun:
        _must_fit(project)
        require_pins(project, trace.state())
        _must_know_what_has_left(project, trace.state())
        require_all_events(project, trace.events)
        _must_be_judged_alike(project, trace.state(), signers)
        # What the digest leaves out (`commit` and the like) may change: jobs read this file.
        write_if_changed(project.run_dir / "config.json", dumps(project.config.to_json()))
        return trace
    _must_be_new(project)
    _must_know_what_has_left(project, None)
    require_all_events(project, tuple)
    require_data(project)
    _pin(project)
    facts = {"run": project.run, "plan": project.plan.digest, "config": project.config_digest}
    if signers is not None:
        write_bytes(project.run_dir / SIGNERS_COPY, signers.content)
        facts["signers"] = signers.digest
    copies = {"snapshot": project.snapshot, "experiment": project.base_experiment}
    facts |= {name: file_digest(path) for name, path in copies.items()}
    trace.append("run_started", {**facts, "variables": project.config.variables})
    return trace


def _signers(project: Project) -> Signers | None:
    """Who may sign answers, by the project's file as it is now."""
    if project.config.signers is None:
        return None
    require_keygen()
    try:
        signers = Signers((project.root / project.config.signers).read_bytes())
        fault = None if signers.named() else "it names nobody"
    except OSError as error:
        fault = f"it cannot be read: {error.strerror}"
    if fault is None:
        return signers
    raise EopError(
        "EOP614",
        f"nobody could answer a gate by the file of allowed signers: {fault}",
        where=Where(project.config.signers),
        hint="one line each, '<name> <key type> <public key>'; without `gates: {signers: ...}` in "
        "the config whoever may write to gates/ answers",
        exit_code=ExitCode.CONFIG,
    )


def _must_be_judged_alike(project: Project, state: State, signers: Signers | None) -> None:
    """Who may answer is part of the procedure, which a run never changes on the way."""
    if (signers.digest if signers else None) != state.signers:
        raise EopError(
            "EOP715",
            f"the allowed signers have changed since run '{project.run}' began",
            where=Where(project.config.signers or "config/config.yaml"),
            hint=f"restore the file from {project.relative(project.run_dir / SIGNERS_COPY)}, or "
            f"{another_run(project)}",
            exit_code=ExitCode.STATE,
        )


def _pin(project: Project) -> None:
    experiment = project.root / project.config.experiment
    if not experiment.is_file():
        raise EopError(
            "EOP611",
            "the base experiment config is missing",
            where=Where(project.config.experiment),
            hint="name one with the key `experiment` of config/config.yaml",
            exit_code=ExitCode.CONFIG,
        )
    snapshot = pin_snapshot(project.root, project.plan.target)
    write_bytes(project.base_experiment, experiment.read_bytes())
    write_json(
        project.run_dir / "base" / "snapshot.json",
        {"path": project.relative(snapshot), "sha256": file_digest(snapshot)},
    )
    write_json(project.run_dir / "config.json", project.config.to_json())
    write_json(project.run_dir / "plan.json", project.plan.to_json())


def _must_be_new(project: Project) -> None:
    """Entries are history: a run that reuses their ids would fail when it publishes, not before."""
    board = project.root / "leaderboard"
    names = [f"{project.run}-base", f"{project.run}-popularity", f"{project.run}-it[0-9]*-p[0-9]*"]
    used = sorted(path.parent.name for n in names for path in board.glob(f"{n}/entry.yaml"))
    if used:
        raise EopError(
            "EOP713",
            f"the leaderboard holds entries of an earlier run '{project.run}': {', '.join(used)}",
            where=Where("leaderboard"),
            hint=another_run(project),
            exit_code=ExitCode.STATE,
        )


def _must_know_what_has_left(project: Project, state: State | None) -> None:
    """Nothing follows the last event of a chain, so what it has left tells of a missing end."""
    for depth in ("it*/*/outcome.json", "it*/p*/*/outcome.json"):
        for path in sorted(project.run_dir.glob(depth)):
            key = str(read_json(path)["node"])
            node = state.nodes.get(key) if state else None
            answered = state is not None and key in state.gates
            if not answered and not (node and node.final):
                raise EopError(
                    "EOP714",
                    f"{key} has left, and the trace does not know: events are missing at its end",
                    where=Where(project.relative(project.trace_dir)),
                    hint=f"restore the trace, or {another_run(project)}",
                    exit_code=ExitCode.STATE,
                )


def require_all_events(project: Project, read: Callable[[], Sequence[Event]]) -> None:
    """Raise ``EopError`` (EOP714) where the run has had other events than ``read`` gives."""
    lost = cut(project.run_dir, read)
    if lost:
        raise EopError(
            "EOP714",
            f"events are missing at the end of the trace: {lost}",
            where=Where(project.relative(project.trace_dir)),
            hint=f"restore the trace, or {another_run(project)}",
            exit_code=ExitCode.STATE,
        )


def _must_fit(project: Project) -> None:
    begun = project.of_run(project.root, project.run)
    way_out = another_run(project)
    if begun.plan.digest != project.plan.digest:
        raise EopError(
            "EOP710",
            f"the protocol has changed since run '{project.run}' began:\n  "
            + "\n  ".join(differences(begun.plan, project.plan)),
            where=Where(project.config.protocol),
            hint="restore it; or `eop migrate`, if the run may go on under the new one; or "
            f"{way_out}",
            exit_code=ExitCode.STATE,
        )
    if begun.config_digest != project.config_digest:
        old = read_json(project.run_dir / "config.json")
        changed = [
            f"{key}: {old.get(key)!r} -> {value!r}"
            for key, value in project.config.to_json().items()
            if old.get(key) != value and key not in OF_MACHINES
        ]
        raise EopError(
            "EOP711",
            f"the workflow config has changed since run '{project.run}' began:\n  "
            + "\n  ".join(changed),
            hint=f"restore the values, or {way_out}",
            exit_code=ExitCode.STATE,
        )
