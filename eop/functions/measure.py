"""Train and judge one tree with several seeds, and write down what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json
from eop.core.locks import exclusive
from eop.evidence.manifest import FileRef

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.functions.recommender import Recommender

# In this order, one ended before the next begins: the test's histories hold the validation
# target, and nothing of a candidate may still run on validation while it has them.
TARGETS = ("validation", "test")
METRICS = ("ndcg@10", "hr@10", "mrr")
_CANONICAL = "hstu.metrics/1"
_NO_SEED = 0  # the popularity baseline is not trained


@dataclass(frozen=True)
class Start:
    """What a fine-tuning begins with: ``experiment`` trained by ``recommender`` in its scratch.

    Several fine-tunings may share one; the first trains it and the others wait.
    """

    recommender: Recommender
    experiment: Path

    def weights(self, seeds: Sequence[int], *, refit: bool) -> dict[int, Path]:
        """The folder of each seed's checkpoint, trained on the same data as what begins there."""
        with exclusive(self.recommender.scratch / ".lock", wait=True):
            folders = self.recommender.train(self.experiment, seeds, refit=refit)
        return dict(zip(seeds, folders, strict=True))


def train_seeds(
    root: Path,
    recommender: Recommender,
    experiment: Path,
    seeds: Sequence[int],
    *,
    refit: bool = False,
    start: Start | None = None,
) -> dict[str, Any]:
    """Train once per seed; the ``checkpoint`` document with every file's digest.

    ``processes`` in it says how many trained each model together.
    ``refit`` trains on the validation events too; ``start`` makes it a fine-tuning.
    """
    trained = []
    begin = start.weights(seeds, refit=refit) if start else None
    folders = recommender.train(experiment, seeds, refit=refit, start=begin)
    for seed, folder in zip(seeds, folders, strict=True):
        files = {"checkpoint": "checkpoint.json", "model": "model.safetensors"}
        refs = {key: _ref(root, folder / name) for key, name in files.items()}
        trained.append({"seed": seed, **refs, "curve": _ref(root, folder / "curve.tsv")})
    return {"schema": "checkpoint/1", "processes": recommender.processes, "seeds": trained}


def judge_seeds(
    root: Path, recommender: Recommender, checkpoint: dict[str, Any], *, test: bool = True
) -> dict[str, Any]:
    """Judge every seed's checkpoint; the ``metrics`` document.

    It shows the validation target. With ``test``, the canonical test is read here, counted in
    ``reads``, and sealed: the document names the files of its numbers by digest, and no agent is
    given them. Raises ``EopError`` (EOP650) when weights are not those that the training left.
    """
    seeds, folders = _weights(root, checkpoint)
    judged = list(zip(seeds, recommender.evaluate(folders, "validation"), strict=True))
    sealed = _judge_test(root, recommender, seeds, folders) if test else None
    return _document(root, judged, sealed)


def refit_seeds(
    root: Path,
    recommender: Recommender,
    experiment: Path,
    seeds: Sequence[int],
    *,
    start: Start | None = None,
) -> dict[str, Any]:
    """Train anew on all but the test events, same experiment, and judge that on the test.

    The ``refit`` document: the checkpoints, and the test sealed as in ``judge_seeds``. To be
    called after validation has been judged: these checkpoints have seen its targets. What judges
    writes where the training could not.
    """
    trains = replace(recommender, scratch=recommender.scratch / "refit")
    judges = replace(recommender, scratch=recommender.scratch / "refit-judged")
    checkpoint = train_seeds(root, trains, experiment, seeds, refit=True, start=start)
    known, folders = _weights(root, checkpoint)
    sealed = _judge_test(root, judges, known, folders)
    return {"schema": "refit/1", "checkpoint": checkpoint, "sealed": sealed}


def judge_popularity(root: Path, recommender: Recommender) -> dict[str, Any]:
    """The popularity baseline as a ``metrics`` document; its reads of the test are its own."""
    alone = replace(recommender, scratch=recommender.scratch / "popularity")
    validation, test = [alone.popularity(target) for target in TARGETS]
    sealed = _sealed(root, [(_NO_SEED, test)], reads=alone.reads("test"))
    return _document(root, [(_NO_SEED, validation)], sealed)


def open_sealed(root: Path, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The sealed test numbers of a ``metrics`` or ``refit`` document: {seed, metrics} per seed.

    Raises ``EopError`` when a file is no longer what was sealed (EOP650) or is no canonical
    evaluation (EOP653).
    """
    return [
        {
            "seed": seed["seed"],
            "metrics": _metrics(_canonical(measured_file(root, seed["metrics"]))),
        }
        for seed in document["sealed"]["seeds"]
    ]


def measured_file(root: Path, ref: dict[str, Any]) -> Path:
    """The file that a ``checkpoint`` or ``metrics`` document names by path, digest and size.

    Raises ``EopError`` (EOP650) when it is no longer what was written down.
    """
    if found := FileRef.from_json(ref).check(root):
        raise EopError(
            "EOP650",
            f"a file behind a result has changed: {'; '.join(found)}",
            hint="restore it, or start another run: nothing may be judged or published from it",
            exit_code=ExitCode.STATE,
        )
    return root / str(ref["path"])


def mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean over seeds of every metric."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in METRICS}


def _weights(root: Path, checkpoint: dict[str, Any]) -> tuple[list[int], list[Path]]:
    """Seeds and folders of a ``checkpoint`` document, once its files are found unchanged."""
    for seed in checkpoint["seeds"]:
        for name in ("checkpoint", "model"):
            measured_file(root, seed[name])
    folders = [(root / seed["checkpoint"]["path"]).parent for seed in checkpoint["seeds"]]
    return [seed["seed"] for seed in checkpoint["seeds"]], folders


def _judge_test(
    root: Path, recommender: Recommender, seeds: Sequence[int], folders: Sequence[Path]
) -> dict[str, Any]:
    judged = list(zip(seeds, recommender.evaluate(folders, "test"), strict=True))
    return _sealed(root, judged, reads=recommender.reads("test"))


def _sealed(root: Path, judged: Sequence[tuple[int, Path]], *, reads: int) -> dict[str, Any]:
    seeds = [
        {"seed": seed, **{key: _ref(root, test / name) for key, name in _SEALED.items()}}
        for seed, test in judged
    ]
    return {"target": "test", "reads": reads, "seeds": seeds}


def _document(
    root: Path, judged: Sequence[tuple[int, Path]], sealed: dict[str, Any] | None
) -> dict[str, Any]:
    seeds = []
    for seed, validation in judged:
        facts = _canonical(validation / "metrics.json")
        ranks = _ref(root, validation / "ranks.parquet")
        seeds.append({"seed": seed, "metrics": _metrics(facts), "ranks": ranks})
    return {
        "schema": "metrics/1",
        "target": "validation",
        "users": facts["users"],
        "corpus": facts["corpus"],
        "split": facts["split"],
        "metrics": mean([_metrics(seed) for seed in seeds]),
        "seeds": seeds,
        "sealed": sealed,
    }


def _canonical(path: Path) -> dict[str, Any]:
    """The facts of a canonical evaluation. A subset of the users is never an entry's result."""
    facts = read_json(path)
    if not isinstance(facts, dict) or facts.get("schema") != _CANONICAL:
        raise EopError(
            "EOP653",
            f"not a canonical evaluation (schema {_CANONICAL})",
            where=Where(str(path)),
            hint="evaluate all users; results of a subset are never ranked with others",
            exit_code=ExitCode.DATA,
        )
    return facts


def _metrics(facts: dict[str, Any]) -> dict[str, float]:
    """The metrics that rows record, of all that an evaluation leaves."""
    return {name: facts["metrics"][name] for name in METRICS}


_SEALED = {"metrics": "metrics.json", "ranks": "ranks.parquet"}


def _ref(root: Path, path: Path) -> dict[str, Any]:
    return FileRef.of(path, root).to_json()
