"""Attempts of a product that calls a model: through the gateway, counted, and held to its caps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from attempts_made import DONE, OPEN, STARTED, Fake, attempt
from model_api import (
    KEY,
    Answer,
    chat_stream,
    messages_stream,
    responses_stream,
    upstream,
)

from eop.agents.contract import Command, Endpoint, Limits, Result, Status
from eop.agents.gateway.prices import Price, Prices, Rates
from eop.agents.jail import Containment, Jail, Level, detect, landlock_has_networks

if TYPE_CHECKING:
    from pathlib import Path

    from model_api import Upstream

    from eop.agents.contract import Request

# The program of a product: `call` asks the model once and tells how that ended.
CALLER = (
    STARTED
    + """
import urllib.error, urllib.request
def call(path="/v1/messages", **more):
    body = {"model": "m", "max_tokens": 100, "stream": True, "messages": [], **more}
    headers = {"x-api-key": os.environ["TOKEN"], "content-type": "application/json"}
    asked = urllib.request.Request(
        os.environ["BASE"] + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
Path("models/a.py").write_text("a = 2\\n")
"""
)
TOLD = "\nfor name in os.environ: say('message', text=name)\n"
PRICES = Prices(
    models={"m": Price(Rates(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75")))}
)
STREAMS = {
    "/v1/messages": messages_stream(120, 30, 100, 7),
    "/v1/responses": responses_stream(120, 30, 100),
    "/v1/chat/completions": chat_stream(120, 30, 100),
}
JAILS = [
    Jail(Level.NONE),
    pytest.param(Jail(Level.LANDLOCK), marks=pytest.mark.skipif(
        detect() is Level.NONE or not landlock_has_networks(), reason="no network namespaces")),
    pytest.param(Jail(Level.BWRAP), marks=pytest.mark.skipif(
        detect() is not Level.BWRAP, reason="no bubblewrap")),
]  # fmt: skip


@dataclass(frozen=True)
class Caller(Fake):
    trusted: bool = False

    def command(self, request: Request) -> Command:
        assert request.endpoint is not None
        env = {"BASE": request.endpoint.url, "TOKEN": request.endpoint.token}
        return Command(super().command(request).argv, env)


def call(folder: Path, api: Upstream, body: str, *, jail: Jail = OPEN, **changes: Any) -> Result:
    return attempt(
        folder, "", product=Caller(CALLER + body), jail=jail,
        **{"endpoint": Endpoint(api.url, KEY), "prices": PRICES, **changes},
    )  # fmt: skip


def ledger(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "attempt/ledger.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("jail", JAILS, ids=lambda jail: jail.kind)
def test_a_call_passes_and_is_counted_whatever_the_jail(tmp_path: Path, jail: Jail) -> None:
    assert (jail.containment() is Containment.NONE) == (jail.kind is Level.NONE)
    with upstream(Answer(frames=STREAMS["/v1/messages"])) as api:
        result = call(tmp_path, api, "say('message', text=call()[1])\n" + DONE, jail=jail)
    assert result.status is Status.OK, result.reason
    usage = result.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (120, 100, 7, 30)
    assert (usage.source, usage.usd_basis, usage.complete) == ("gateway", "gateway", True)
    # 13 uncached at 3, 100 read at 0.3, 7 written at 3.75, 30 of output at 15, by the million
    assert usage.usd == pytest.approx(0.00054525, abs=1e-12)
    assert result.counters.model_calls == 1
    assert "héllo" in json.loads((tmp_path / "attempt/stdout").read_text().splitlines()[1])["text"]
    (line,) = ledger(tmp_path)
    assert (line["model"], line["status"], line["usd"]) == ("m", 200, "0.00054525")


@pytest.mark.parametrize("path", STREAMS)
def test_a_cap_stops_each_protocol_before_the_call(tmp_path: Path, path: str) -> None:
    body = f"""
first, second = call({path!r}), call({path!r})
assert first[0] == 200, first
say("final", status="error", error="config_error", http_status=second[0], detail=second[1])
"""
    with upstream(Answer(frames=STREAMS[path])) as api:
        result = call(tmp_path, api, body, limits=Limits(wall_s=20, tokens=4400))
        assert len(api.seen) == 1, "the second call went on to the model"
    assert result.status is Status.BUDGET_EXHAUSTED
    assert result.reason.source == "gateway"
    assert result.reason.http_status == (403 if path == "/v1/messages" else 400)
    assert "run budget exhausted" in result.reason.detail
    assert (result.usage.tokens, result.counters.model_calls) == (150, 1)
    assert [line.get("refused") for line in ledger(tmp_path)] == [None, "budget"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(frames=STREAMS["/v1/messages"], pause_s=1.0), Status.OK),
        (Answer(frames=STREAMS["/v1/messages"][:2], hang_s=60), Status.TIMEOUT),
    ],
    ids=["slow", "silent"],
)
def test_a_model_that_answers_is_progress_though_the_product_is_silent(
    tmp_path: Path, answer: Answer, status: Status
) -> None:
    limits = Limits(wall_s=40, idle_s=3, grace_s=0.3)
    with upstream(answer) as api:
        result = call(tmp_path, api, "call()\n" + DONE, limits=limits)
    assert result.status is status, result.reason
    assert result.usage.complete is (status is Status.OK)
    assert result.usage.input == 120


def test_the_key_is_nowhere_that_an_agent_or_a_file_could_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    body = """
say("message", text=call()[1])
say("message", text=json.dumps(dict(os.environ)))
for entry in Path("/proc").glob("[0-9]*/environ"):
    try: say("message", text=entry.read_bytes().decode(errors="replace"))
    except OSError: pass
"""
    jail = Jail(detect())
    with upstream(Answer(frames=STREAMS["/v1/messages"])) as api:
        result = call(tmp_path, api, body + DONE, jail=jail)
        assert api.seen[0]["headers"]["x-api-key"] == KEY
    assert result.status is Status.OK, result.reason
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) > 10
    assert [path for path in stored if KEY.encode() in path.read_bytes()] == []
