"""Train and judge one tree with several seeds, and write down what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json
from eop.evidence.manifest import FileRef

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.functions.recommender import Recommender

# In this order, one ended before the next begins: the test's histories hold the validation
# target, and nothing of a candidate may still run on validation while it has them.
TARGETS = ("validation", "test")
METRICS = ("ndcg@10", "hr@10", "mrr")
_NO_SEED = 0  # the popularity baseline is not trained


def train_seeds(
    root: Path, recommender: Recommender, experiment: Path, seeds: Sequence[int]
) -> dict[str, Any]:
    """Train once per seed; the ``checkpoint`` document with every file's digest."""
    trained = []
    for seed, folder in zip(seeds, recommender.train(experiment, seeds), strict=True):
        files = {"checkpoint": "checkpoint.json", "model": "model.safetensors"}
        refs = {key: _ref(root, folder / name) for key, name in files.items()}
        trained.append({"seed": seed, **refs, "curve": _ref(root, folder / "curve.tsv")})
    return {"schema": "checkpoint/1", "seeds": trained}


def judge_seeds(root: Path, recommender: Recommender, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Judge every seed's checkpoint; the ``metrics`` document.

    It shows the validation target. The canonical test is read here, counted in ``reads``, and
    sealed: the document names the files of its numbers by digest, and no agent is given them.
    Raises ``EopError`` (EOP650) when weights are not those that the training left.
    """
    for seed in checkpoint["seeds"]:
        for name in ("checkpoint", "model"):
            measured_file(root, seed[name])
    folders = [(root / seed["checkpoint"]["path"]).parent for seed in checkpoint["seeds"]]
    seeds = [seed["seed"] for seed in checkpoint["seeds"]]
    validation, test = [recommender.evaluate(folders, target) for target in TARGETS]
    judged = list(zip(seeds, validation, test, strict=True))
    return _document(root, judged, reads=recommender.reads("test"))


def judge_popularity(root: Path, recommender: Recommender) -> dict[str, Any]:
    """The popularity baseline as a ``metrics`` document."""
    validation, test = [recommender.popularity(target) for target in TARGETS]
    return _document(root, [(_NO_SEED, validation, test)], reads=recommender.reads("test"))


def open_sealed(root: Path, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The sealed test numbers of a ``metrics`` document: one {seed, metrics} per seed.

    Raises ``EopError`` (EOP650) when a file is no longer what was sealed.
    """
    return [
        {
            "seed": seed["seed"],
            "metrics": read_json(measured_file(root, seed["metrics"]))["metrics"],
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


def _document(
    root: Path, judged: Sequence[tuple[int, Path, Path]], *, reads: int
) -> dict[str, Any]:
    seeds, sealed = [], []
    for seed, validation, test in judged:
        facts = read_json(validation / "metrics.json")
        ranks = _ref(root, validation / "ranks.parquet")
        seeds.append({"seed": seed, "metrics": facts["metrics"], "ranks": ranks})
        refs = {key: _ref(root, test / name) for key, name in _SEALED.items()}
        sealed.append({"seed": seed, **refs})
    return {
        "schema": "metrics/1",
        "target": "validation",
        "users": facts["users"],
        "corpus": facts["corpus"],
        "split": facts["split"],
        "metrics": mean([seed["metrics"] for seed in seeds]),
        "seeds": seeds,
        "sealed": {"target": "test", "reads": reads, "seeds": sealed},
    }


_SEALED = {"metrics": "metrics.json", "ranks": "ranks.parquet"}


def _ref(root: Path, path: Path) -> dict[str, Any]:
    return FileRef.of(path, root).to_json()
