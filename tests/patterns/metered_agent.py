"""A pattern whose agent calls a model through its gateway."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from attempts_made import DONE, STARTED, Fake
from toy_target import base, linear_phase, snapshot, task

from eop.agents.contract import Command, Endpoint, Request
from eop.agents.gateway.prices import Price, Prices, Rates
from eop.patterns import run

if TYPE_CHECKING:
    from pathlib import Path

PRICES = Prices(models={"m": Price(Rates(Decimal(1), Decimal(10)))})
# Calls its model until it is refused; each refusal is its end.
PROGRAM = (
    STARTED
    + """
import urllib.error, urllib.request
for number in range(9):
    body = {"model": "m", "max_tokens": 50, "stream": True, "messages": []}
    headers = {"x-api-key": os.environ["TOKEN"]}
    asked = urllib.request.Request(
        os.environ["BASE"] + "/v1/messages", json.dumps(body).encode(), headers)
    try:
        urllib.request.urlopen(asked, timeout=60).read()
    except urllib.error.HTTPError as error:
        say("final", status="error", error="config_error", detail=error.read().decode())
        sys.exit(1)
Path("../outputs/report.md").write_text("fine")
"""
    + DONE
)


@dataclass(frozen=True)
class Metered(Fake):
    url: str = ""
    name: str = "scripted"
    vendor: str = "scripted"

    def upstream(self) -> Endpoint:
        return Endpoint(self.url, "real-key-1")

    def command(self, request: Request) -> Command:
        assert request.endpoint is not None
        env = {"BASE": request.endpoint.url, "TOKEN": request.endpoint.token}
        return Command(super().command(request).argv, env, secrets=(request.endpoint.token,))


# Tells its token to whoever reads what it leaves.
LEAKY = PROGRAM.replace(
    "for number in range(9)",
    """print("my token:", os.environ["TOKEN"], flush=True)
for kept in (Path(os.environ["HOME"], "token"), Path("../outputs/token.txt")):
    kept.write_text(os.environ["TOKEN"])
for number in range(9)""",
)


def metered(folder: Path, url: str, program: str = PROGRAM, **changes: Any) -> Any:
    """The result of a phase of one agent; its trees are made once."""
    if not (folder / "base").is_dir():
        base(folder)
        snapshot(folder)
    phase = linear_phase(**changes)
    return run(task(folder, phase, Metered(program, url=url), prices=PRICES))
