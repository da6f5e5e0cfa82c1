"""What a phase spends on models is what its gateways charge, also when the runtime is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from metered_agent import LEAKY, PROGRAM, Metered, metered
from model_api import Answer, messages_stream, upstream, wait_until

from eop.patterns.progress import Reader
from eop.protocol.model import Budget
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from model_api import Upstream

HERE = Path(__file__).parent
WHOLE = Answer(frames=messages_stream(100, 20))


def killed(folder: Path, api: Upstream, program: str, *, calls: int) -> None:
    """Run a phase in a process of its own, which dies when its agent has made ``calls``."""
    code = f"""
import sys
from pathlib import Path
sys.path[:0] = {[str(HERE), str(HERE.parent / "agents")]!r}
from metered_agent import metered
metered(Path({str(folder)!r}), {api.url!r}, {program!r})
"""
    runner = subprocess.Popen([sys.executable, "-c", code])
    wait_until(lambda: len(api.seen) == calls, 60)
    runner.send_signal(signal.SIGKILL)
    runner.wait()


def test_a_phase_is_charged_what_its_gateway_counted(tmp_path: Path) -> None:
    with upstream(WHOLE) as api:
        result = metered(tmp_path, api.url)
    assert result.outcome is Outcome.COMPLETED, result.reason
    # Nine calls of 100 and 20 tokens, at 1 and 10 dollars by the million.
    assert (result.usage.tokens, result.usage.micro_usd) == (9 * 120, 9 * 300)


def test_a_budget_of_a_phase_is_held_before_the_call(tmp_path: Path) -> None:
    with upstream(WHOLE) as api:
        result = metered(tmp_path, api.url, budget=Budget(tokens=4500))
        made = len(api.seen)
    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert "run budget exhausted" in result.reason
    # A call is reserved at about 4,200 tokens: the bytes of the request, and what may come round.
    assert 1 <= made <= 4
    assert result.usage.tokens == made * 120


def test_dollars_too(tmp_path: Path) -> None:
    with upstream(WHOLE) as api:
        result = metered(tmp_path, api.url, budget=Budget(micro_usd=5200))
    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert 0 < result.usage.micro_usd <= 5200


def test_a_killed_runtime_is_charged_by_the_ledger_that_it_left(tmp_path: Path) -> None:
    """The first call had ended; the second was under way, and may cost all that was held for it."""
    with upstream(WHOLE, Answer(frames=WHOLE.frames[:2], hang_s=120)) as api:
        killed(tmp_path, api, PROGRAM, calls=2)
        product = Metered(PROGRAM, url=api.url)
        spent = Reader().phase(tmp_path / "node/work", {"scripted": product}).spent
        assert spent is not None
        assert spent.tokens is not None
        held = spent.tokens - 120 - 50
        assert 4096 < held < 4096 + 500
        assert spent.micro_usd == 300 + held + 500
        # What goes on has what is left: it cannot make even one call.
        api.answers[:] = [WHOLE]
        again = metered(tmp_path, api.url, budget=Budget(tokens=spent.tokens + 100))
    assert again.outcome is Outcome.BUDGET_EXHAUSTED
    assert len(api.seen) == 2
    assert again.usage.tokens == spent.tokens


def test_what_a_killed_runtime_left_keeps_no_token(tmp_path: Path) -> None:
    def leaks() -> list[str]:
        files = [path for path in (tmp_path / "node").rglob("*") if path.is_file()]
        return sorted(path.name for path in files if b"sk-eop1-" in path.read_bytes())

    with upstream(Answer(frames=WHOLE.frames[:2], hang_s=120)) as api:
        killed(tmp_path, api, LEAKY, calls=1)
        assert leaks() == ["stdout", "token", "token.txt"]
        api.answers[:] = [WHOLE]
        assert metered(tmp_path, api.url).outcome is Outcome.COMPLETED
    assert leaks() == []
    assert "my token: [redacted]" in next(tmp_path.glob("node/work/01-*/a01/stdout")).read_text()
