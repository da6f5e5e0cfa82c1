"""A product that misbehaves costs its own branch: the next node and the next branch work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attempts_made import BEST
from impostors import impostor, survivors
from model_api import KEY, Answer, messages_stream, upstream

from eop.agents.contract import Limits
from eop.agents.target import Target
from eop.patterns import Task, run
from eop.protocol.model import Output, Phase
from eop.protocol.prompts import prompts_of
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from model_api import Upstream

    from eop.agents.contract import Product
    from eop.runtime.node import NodeResult

# What each branch's agent does; the last one works as it should.
BRANCHES = {
    "hang": (Outcome.TIMED_OUT, "begin(); ignore_signals(); time.sleep(300)"),
    "flood": (
        Outcome.BUDGET_EXHAUSTED, "begin()\n    while True: sys.stdout.write('x' * (1 << 20))"
    ),
    "leak": (Outcome.TAMPERED, "begin(); edit(content=f't = {token!r}'); finish()"),
    "tamper": (Outcome.TAMPERED, "begin(); edit(); edit('judge.py'); finish()"),
    "refused": (Outcome.BLOCKED, "begin(); unauthorised(); raise SystemExit(0)"),
    "silent": (Outcome.FAILED, "pass"),
    "good": (Outcome.COMPLETED, "begin(); edit(); finish()"),
}  # fmt: skip
PHASE = Phase(
    id="implement", line=1, title="Implement", body="", pattern="linear",
    nodes={"implementer": "claude-code"}, tools=("read", "edit", "shell"),
    outputs=(Output("patch", "patch.diff", patch=True),),
)  # fmt: skip


ANSWER = Answer(frames=messages_stream(120, 30))


@pytest.fixture
def api() -> Iterator[Upstream]:
    with upstream(ANSWER) as served:
        yield served


@pytest.fixture
def product(tmp_path: Path, api: Upstream, monkeypatch: pytest.MonkeyPatch) -> Product:
    monkeypatch.setenv("MODEL_KEY", KEY)
    cases = "\n".join(
        f"elif 'do: {name}' in prompt:\n    {body}" for name, (_, body) in BRANCHES.items()
    )
    body = f"if not prompt: raise SystemExit(9)\n{cases}"
    return impostor("claude-code", tmp_path, body, url=api.url, key_env="MODEL_KEY")


def branch(folder: Path, product: Product, name: str) -> NodeResult:
    """A phase instance of its own: all branches start from the same base."""
    base = folder / "base"
    if not base.exists():
        (base / "models").mkdir(parents=True)
        (base / "models/a.py").write_text("a = 1\n")
        (base / "judge.py").write_text("j = 1\n")
    return run(
        Task(
            run="r1", node=f"it01_implement_{name}", phase=PHASE, prompt=f"do: {name}\n",
            base=base, snapshot=base, directory=folder / name,
            products={"claude-code": product}, jail=BEST,
            target=Target("toy", ("models", "judge.py"), ("models/**",)), iteration=1,
            prompts=prompts_of(PHASE, Path(__file__).parents[2]),
            limits=Limits(wall_s=60, idle_s=2, grace_s=0.4, stdout_bytes=2 << 20),
        )
    )  # fmt: skip


def test_branches_fail_alone(tmp_path: Path, api: Upstream, product: Product) -> None:
    for name, (outcome, _) in BRANCHES.items():
        api.answers[:] = [Answer(status=401) if name == "refused" else ANSWER]
        result = branch(tmp_path, product, name)
        assert result.outcome is outcome, (name, result.reason)
        (home,) = (tmp_path / name / "work").glob("*/a01/home")
        assert survivors(home) == []
        assert (home.parent / "result.json").is_file()
        assert [path for path in (tmp_path / name).rglob("*")
                if path.is_file() and KEY.encode() in path.read_bytes()] == []  # fmt: skip
        assert (tmp_path / "base/models/a.py").read_text() == "a = 1\n"
    assert "+a = 2" in (tmp_path / "good/artifacts/patch.diff").read_text()


def test_the_node_after_one_that_failed_works(tmp_path: Path, product: Product) -> None:
    """What a hanging agent has left in its attempt is not in the way of the next one."""
    assert branch(tmp_path, product, "hang").outcome is Outcome.TIMED_OUT
    (tmp_path / "hang").rename(tmp_path / "good")
    assert branch(tmp_path, product, "good").outcome is Outcome.COMPLETED
