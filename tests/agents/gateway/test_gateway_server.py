"""The gateway on the wire: what passes, what does not, and what is charged for how a call ended."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from model_api import (
    KEY,
    Answer,
    chat_plain,
    chat_stream,
    messages_plain,
    messages_stream,
    responses_plain,
    responses_stream,
    upstream,
    wait_until,
)
from yarl import URL

from eop.agents.contract import Endpoint
from eop.agents.gateway.gateway import Gateway
from eop.agents.gateway.ledger import LEDGER, RESERVED, Account, read_account
from eop.agents.gateway.meter import Caps
from eop.agents.gateway.prices import Price, Prices, Rates
from eop.agents.gateway.server import proxy_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from model_api import Upstream

PRICES = Prices(models={"m": Price(Rates(Decimal(3), Decimal(15), Decimal("0.3")))})
PATHS = ("/v1/messages", "/v1/responses", "/v1/chat/completions")
STREAMS = dict(zip(PATHS, (messages_stream, responses_stream, chat_stream), strict=True))
PLAIN = dict(zip(PATHS, (messages_plain, responses_plain, chat_plain), strict=True))


@contextmanager
def gateway(folder: Path, api: Upstream | str, caps: Caps | None = None) -> Iterator[Gateway]:
    folder.mkdir(exist_ok=True)
    url = api if isinstance(api, str) else api.url
    known = Endpoint(url, KEY)
    with Gateway(known, caps or Caps(), PRICES, folder, contained=False) as running:
        yield running


def send(
    to: Gateway,
    path: str = "/v1/messages",
    *,
    method: str = "POST",
    token: str | None = None,
    headers: dict[str, str] | None = None,
    raw: bytes | None = None,
    **body: Any,
) -> http.client.HTTPResponse:
    """One request on a connection of its own; the answer is not read yet."""
    connection = http.client.HTTPConnection("127.0.0.1", to.way.port, timeout=20)
    asked = {"model": "m", "max_tokens": 50, "stream": True, "messages": [], **body}
    sent = {"x-api-key": to.endpoint.token if token is None else token, **(headers or {})}
    data = json.dumps(asked).encode() if raw is None else raw
    connection.request(method, path, data if method == "POST" else None, sent)
    return connection.getresponse()


def account(folder: Path) -> Account:
    found = read_account(folder)
    assert found is not None
    return found


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("path", PATHS)
def test_each_protocol_passes_as_it_is_and_is_counted(
    tmp_path: Path, path: str, streamed: bool
) -> None:
    frames = STREAMS[path](120, 30, 100)
    answer = Answer(frames=frames) if streamed else Answer(PLAIN[path](120, 30, 100))
    with upstream(answer) as api, gateway(tmp_path / "a", api) as running:
        got = send(running, f"{path}?beta=true", stream=streamed, headers={"x-mine": "kept"})
        body = got.read()
    assert got.status == 200
    assert body == (b"".join(frames) if streamed else answer.body)
    assert api.seen[0]["path"] == f"{path}?beta=true"
    assert api.seen[0]["headers"]["x-mine"] == "kept"
    told = account(tmp_path / "a")
    usage = told.usage
    assert (usage.input, usage.output, usage.cache_read, usage.complete) == (120, 30, 100, True)
    assert told.charged.usd == Decimal("0.00054")
    assert told.charged_micro_usd == 540


@pytest.mark.parametrize("header", ["x-api-key", "authorization", "api-key"])
def test_the_key_takes_the_place_of_the_token(tmp_path: Path, header: str) -> None:
    answer = Answer(messages_plain(1, 1), headers={"set-cookie": "c=1", "connection": "x-hop",
                                                   "x-hop": "1", "x-note": "kept"})  # fmt: skip
    with upstream(answer) as api, gateway(tmp_path / "a", api) as running:
        bearer = "Bearer " if header == "authorization" else ""
        token = {header: f"{bearer}{running.endpoint.token}", "cookie": "c=2"}
        connection = http.client.HTTPConnection("127.0.0.1", running.way.port, timeout=20)
        connection.request("POST", "/v1/messages", b'{"model": "m"}', token)
        got = connection.getresponse()
        got.read()
    assert got.status == 200
    seen = api.seen[0]["headers"]
    assert seen[header] == f"{bearer}{KEY}"
    assert running.endpoint.token not in json.dumps(seen)
    assert "cookie" not in seen
    names = {name.lower() for name, _ in got.getheaders()}
    assert "x-note" in names
    assert not names & {"set-cookie", "x-hop"}


@pytest.mark.parametrize("token", ["", "wrong", KEY])
def test_nobody_passes_without_the_token(tmp_path: Path, token: str) -> None:
    with upstream(Answer(b"{}")) as api, gateway(tmp_path / "a", api) as running:
        got = send(running, token=token)
        assert got.status == 401
        assert KEY not in got.read().decode()
    assert api.seen == []
    assert account(tmp_path / "a").ended == ()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/embeddings"), ("POST", "/v1/messages/batches"), ("POST", "/v1/files"),
        ("GET", "/v1/responses/resp_1"), ("DELETE", "/v1/models/m"), ("POST", "/v1/models"),
        ("GET", "/v1/models/../files"), ("POST", "/v1/messages/../files"), ("GET", "/"),
    ],
)  # fmt: skip
def test_what_is_not_metered_does_not_pass(tmp_path: Path, method: str, path: str) -> None:
    with upstream(Answer(b"{}")) as api, gateway(tmp_path / "a", api) as running:
        assert send(running, path, method=method).status == 404
    assert api.seen == []


def test_probes_are_answered_and_cost_nothing(tmp_path: Path) -> None:
    with upstream(Answer(b'{"input_tokens": 9}')) as api:
        with gateway(tmp_path / "a", api, Caps(calls=0)) as running:
            assert send(running, "/", method="HEAD", token="").status == 200
            assert api.seen == []
            assert send(running, "/v1/messages/count_tokens").read() == b'{"input_tokens": 9}'
            assert send(running, "/v1/models", method="GET").status == 200
        assert [one["path"] for one in api.seen] == ["/v1/messages/count_tokens", "/v1/models"]
    assert account(tmp_path / "a").ended == ()


def test_a_base_url_with_a_path_is_kept(tmp_path: Path) -> None:
    with upstream(Answer(chat_plain(1, 1)), path="/api/v1") as api:
        with gateway(tmp_path / "a", api) as running:
            assert running.endpoint.url.endswith("/api/v1")
            assert send(running, "/api/v1/chat/completions", stream=False).status == 200
            assert send(running, "/v1/chat/completions").status == 404
        assert [one["path"] for one in api.seen] == ["/api/v1/chat/completions"]


def test_an_answer_is_handed_on_as_it_comes(tmp_path: Path) -> None:
    frames = messages_stream(10, 5)
    answer = Answer(frames=frames[:2], hang_s=30)
    with upstream(answer) as api, gateway(tmp_path / "a", api) as running:
        got = send(running)
        # The model is silent now, and its answer has no end; what came is here all the same.
        assert got.read1(len(frames[0])) == frames[0]
        assert running.traffic() > 0
        api.released.set()
        got.read()


def test_an_error_of_the_api_passes_as_it_is_and_costs_nothing(tmp_path: Path) -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
    answer = Answer(body, status=529, headers={"retry-after": "7"})
    with upstream(answer) as api, gateway(tmp_path / "a", api, Caps(tokens=10**6)) as running:
        got = send(running)
        assert (got.status, got.read(), got.headers["retry-after"]) == (529, body, "7")
    told = account(tmp_path / "a")
    assert (told.usage.input, told.usage.usd, told.usage.complete) == (0, 0.0, True)
    assert told.charged.input + told.charged.output == 0
    assert told.ended[0]["status"] == 529


def test_a_redirect_does_not_take_the_key_elsewhere(tmp_path: Path) -> None:
    with upstream(Answer(b"{}")) as other:
        answer = Answer(b"", status=307, headers={"location": f"{other.url}/v1/messages"})
        with upstream(answer) as api, gateway(tmp_path / "a", api) as running:
            assert send(running).status == 307
        assert other.seen == []


def test_a_proxy_is_used_for_other_machines_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "inside.example")
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert proxy_of(URL("https://api.example/v1")) == "http://127.0.0.1:9"
    assert proxy_of(URL("https://inside.example/v1")) is None
    with upstream(Answer(messages_plain(1, 1))) as api, gateway(tmp_path / "a", api) as running:
        bearer = {"authorization": f"Bearer {running.endpoint.token}"}
        assert send(running, headers=bearer).status == 200
        assert api.seen[0]["headers"]["authorization"] == f"Bearer {KEY}"
    with gateway(tmp_path / "b", "http://api.example/v1") as running:
        got = send(running, "/v1/messages")
        assert got.status == 502
        assert "127.0.0.1:9" in got.read().decode()


def test_a_stream_that_breaks_off_is_a_lower_bound_and_charged_what_was_held(
    tmp_path: Path,
) -> None:
    answer = Answer(frames=messages_stream(120, 30)[:3], cut=True)
    with upstream(answer) as api, gateway(tmp_path / "a", api, Caps(tokens=10**6)) as running:
        got = send(running)
        with pytest.raises(http.client.IncompleteRead):
            got.read()
    told = account(tmp_path / "a")
    assert (told.usage.input, told.usage.output, told.usage.complete) == (120, 1, False)
    assert (told.charged.input, told.charged.output) == (120, 50)
    assert told.ended[0]["error"]


def test_an_agent_that_goes_away_ends_its_call(tmp_path: Path) -> None:
    answer = Answer(frames=messages_stream(120, 30)[:2], hang_s=30)
    with upstream(answer) as api, gateway(tmp_path / "a", api) as running:
        got = send(running)
        got.read1(10)
        got.close()
        wait_until(lambda: account(tmp_path / "a").ended)
        assert not api.released.is_set()
    told = account(tmp_path / "a")
    assert (told.usage.input, told.usage.complete) == (120, False)
    assert told.unfinished == ()


def test_the_end_of_the_attempt_settles_what_is_under_way(tmp_path: Path) -> None:
    answer = Answer(frames=messages_stream(120, 30)[:2], hang_s=30)
    with upstream(answer) as api, gateway(tmp_path / "a", api) as running:
        send(running).read1(10)
    told = account(tmp_path / "a")
    assert (len(told.made), told.unfinished, told.usage.complete) == (1, (), False)


def test_an_api_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    with gateway(tmp_path / "a", "http://127.0.0.1:9") as running:
        got = send(running)
        assert got.status == 502
        assert "cannot connect" in got.read().decode().lower()
    told = account(tmp_path / "a")
    assert (told.charged.input, told.usage.complete) == (0, True)


def test_an_answer_without_usage_is_unknown_and_charged_what_was_held(tmp_path: Path) -> None:
    with upstream(Answer(b"<html>")) as api, gateway(tmp_path / "a", api) as running:
        assert send(running).read() == b"<html>"
    told = account(tmp_path / "a")
    assert (told.usage.input, told.usage.tokens, told.usage.usd) == (None, None, None)
    assert not told.usage.complete
    assert told.charged.output == 50
    assert told.charged.input > 50


def test_compression_on_either_side_changes_nothing(tmp_path: Path) -> None:
    body = messages_plain(120, 30)
    answer = Answer(gzip.compress(body), headers={"content-encoding": "gzip"})
    packed = gzip.compress(json.dumps({"model": "m", "max_tokens": 3}).encode())
    with upstream(answer) as api, gateway(tmp_path / "a", api) as running:
        got = send(running, raw=packed, headers={"content-encoding": "gzip"})
        assert (got.read(), got.headers["content-encoding"]) == (body, None)
    assert api.seen[0]["body"] == {"model": "m", "max_tokens": 3}
    assert account(tmp_path / "a").usage.tokens == 150


def test_what_was_read_is_what_the_api_gets(tmp_path: Path) -> None:
    """Of a key that is given twice, another reader might take the other value."""
    raw = b'{"model": "m", "max_tokens": 99999, "max_tokens": 7, "system": "\\ud800 \xc3\xa9"}'
    with upstream(Answer(messages_plain(1, 1))) as api, gateway(tmp_path / "a", api) as running:
        assert send(running, raw=raw).status == 200
    body = api.seen[0]["body"]
    assert (body["max_tokens"], body["system"]) == (7, "\ud800 é")
    assert api.seen[0]["raw"].count(b"max_tokens") == 1


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b"", b"\xff", b'"x"', b"[" * 100_000], ids=lambda raw: repr(raw[:3])
)
def test_a_request_that_is_none_is_refused(tmp_path: Path, raw: bytes) -> None:
    with upstream(Answer(b"{}")) as api, gateway(tmp_path / "a", api) as running:
        assert send(running, raw=raw).status == 400
    assert api.seen == []


@pytest.mark.parametrize(("path", "status"), [(PATHS[0], 403), (PATHS[1], 400), (PATHS[2], 400)])
def test_a_refusal_looks_like_the_protocols_own_errors(
    tmp_path: Path, path: str, status: int
) -> None:
    with upstream(Answer(b"{}")) as api, gateway(tmp_path / "a", api, Caps(calls=0)) as running:
        got = send(running, path)
        error = json.loads(got.read())["error"]
    assert got.status == status
    assert error["message"] == (
        "run budget exhausted: the call could pass the limit of 0 model calls"
    )
    assert api.seen == []
    (line,) = account(tmp_path / "a").ended
    assert (line["refused"], line["status"], line["model"]) == ("budget", status, "m")


def test_a_chat_stream_is_metered_though_its_agent_asks_for_no_usage(tmp_path: Path) -> None:
    with upstream(Answer(frames=chat_stream(9, 4))) as api, gateway(tmp_path / "a", api) as running:
        send(running, PATHS[2]).read()
    assert api.seen[0]["body"]["stream_options"] == {"include_usage": True}


def test_calls_at_the_same_time_cannot_overdraw(tmp_path: Path) -> None:
    """Twenty calls at once where there is room for three."""
    answer = Answer(frames=messages_stream(50, 10))
    caps = Caps(output=150, usd=Decimal(1))
    with upstream(answer) as api, gateway(tmp_path / "a", api, caps) as running:
        barrier = threading.Barrier(20)

        def one(_: int) -> int:
            barrier.wait()
            got = send(running)
            got.read()
            return got.status

        with ThreadPoolExecutor(20) as pool:
            found = list(pool.map(one, range(20)))
        passed = len(api.seen)
        assert found.count(200) == passed >= 3
        assert found.count(403) == 20 - passed
    told = account(tmp_path / "a")
    assert told.charged.output == 10 * passed <= 150


def test_eight_nodes_have_ledgers_of_their_own(tmp_path: Path) -> None:
    def node(number: int) -> tuple[int, Account]:
        folder = tmp_path / str(number)
        path = PATHS[number % 3]
        scripted = [(100 * number + call, 10 + call) for call in range(number)]
        answers = [Answer(frames=STREAMS[path](*one)) for one in scripted]
        with upstream(*answers, Answer(b"{}")) as api, gateway(folder, api) as running:
            # Two agents of the node at once: a main one and one below it.
            first = threading.Thread(target=lambda: send(running, path).read())
            first.start()
            for _ in scripted[1:]:
                send(running, path).read()
            first.join()
        assert len(api.seen) == number
        return sum(read + written for read, written in scripted), account(folder)

    with ThreadPoolExecutor(8) as pool:
        for number, (scripted, told) in enumerate(pool.map(node, range(1, 9)), 1):
            assert (told.usage.tokens, len(told.made)) == (scripted, number)
            assert told.charged.input + told.charged.output == scripted


def test_no_call_is_made_that_cannot_be_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with upstream(Answer(messages_plain(1, 1))) as api, gateway(tmp_path / "a", api) as running:
        (tmp_path / "a" / RESERVED).unlink()
        (tmp_path / "a" / RESERVED).mkdir()
        assert send(running).status == 500
        (tmp_path / "a" / RESERVED).rmdir()
        assert send(running).status == 200
    assert len(api.seen) == 1


def test_a_call_under_way_when_the_runtime_died_is_charged_what_was_held(tmp_path: Path) -> None:
    held = {"input": 900, "output": 50, "usd": "0.003"}
    ended = {"call": 1, "input": 10, "output": 5, "usd": "0.001", "usd_basis": "gateway",
             "complete": True, "charged": {"input": 10, "output": 5, "usd": "0.001"}}  # fmt: skip
    (tmp_path / LEDGER).write_text(json.dumps(ended) + '\n{"call": 2, "inp')
    lines = [{"call": 1, "reserved": held}, {"call": 2, "reserved": held}]
    (tmp_path / RESERVED).write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = account(tmp_path)
    assert (told.charged.input, told.charged.output) == (910, 55)
    assert told.charged_micro_usd == 4000
    assert (told.usage.input, told.usage.complete) == (10, False)
    assert read_account(tmp_path / "nowhere") is None
