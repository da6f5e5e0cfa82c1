"""What an evaluation leaves: ranks first, then the metrics made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hstu.evaluation.metrics import metrics
from hstu.evaluation.rank_files import (
    CanonicalRanks,
    SubsetRanks,
    write_canonical_ranks,
    write_subset_ranks,
)
from hstu.evaluation.results import (
    SUBSET_PREFIX,
    CanonicalResult,
    SubsetResult,
    write_canonical,
    write_subset,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from hstu.evaluation.task import CanonicalTask, Questions, SubsetTask


def record(
    task: CanonicalTask, rank: NDArray[np.int64], out: Path, test_reads: int | None
) -> CanonicalResult:
    """Write the ranks [U], then the metrics, and return the result."""
    facts = _facts(task.questions)
    users = task.questions.histories.user_ids
    write_canonical_ranks(out, CanonicalRanks(**facts, users=users, ranks=rank))
    values = metrics(rank, facts["corpus"])
    result = CanonicalResult(**facts, users=len(rank), metrics=values, test_reads=test_reads)
    write_canonical(out, result)
    return result


def record_subset(
    task: SubsetTask, rank: NDArray[np.int64], out: Path, test_reads: int | None
) -> SubsetResult:
    """Write the ranks [U] of a subset, then the metrics, and return the result."""
    facts = _facts(task.questions)
    users = task.questions.histories.user_ids
    write_subset_ranks(out, SubsetRanks(**facts, users=users, ranks=rank, sample=task.sample))
    values = {SUBSET_PREFIX + k: value for k, value in metrics(rank, facts["corpus"]).items()}
    result = SubsetResult(
        **facts,
        users=len(rank),
        population=task.population,
        sample=task.sample,
        metrics=values,
        test_reads=test_reads,
    )
    write_subset(out, result)
    return result


def _facts(questions: Questions) -> dict[str, Any]:
    return {
        "target": questions.target,
        "split": questions.split,
        "corpus": len(questions.items),
    }
