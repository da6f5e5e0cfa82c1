"""The program behind ``scripted``: plays one step of a playbook in the current directory.

``python -I scripted_program.py --playbook FILE --request request.json``, the prompt on standard
input, JSON lines on standard output: started, tool_call, message, usage, final. Exit 0 when every
action was done, 1 when one failed. It knows nothing of the harness but the request's JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

EXPERIMENT = "experiment.yaml"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w@\-]*(?:\.[\w@\-]+)*)(?::(\.\d+[f%]))?\}")


class ActionFailedError(Exception):
    """An action that the playbook asks for cannot be done."""


class DeniedError(Exception):
    """An action that the request's capabilities do not allow."""


class Player:
    """One invocation: the request, its inputs and the stream of events."""

    def __init__(self, playbook: Path, request: dict[str, Any]) -> None:
        self.folder = playbook.parent
        self.request = request
        self.turn: dict[str, Any] = request["turn"]
        self.outputs = Path(request["directory"]) / "outputs"
        self.files: dict[str, str] = {
            output["name"]: output["file"] for output in request["outputs"]
        }
        self.inputs = {prior["name"]: Path(prior["path"]) for prior in request["inputs"]}
        self.calls = 0

    def play(self, actions: list[dict[str, Any]]) -> None:
        """Do every action in turn, each reported as a tool call."""
        for action in actions:
            ((name, value),) = action.items()
            self._call(name, value)

    def _call(self, name: str, value: Any) -> None:
        capability, do = ACTIONS[name]
        self.calls += 1
        call = {"id": f"call-{self.calls}", "name": name, "capability": capability}
        try:
            if capability == "edit" and "edit" not in self.request["capabilities"]:
                raise DeniedError(f"{name}: this node may not edit")
            target = do(self, value)
        except DeniedError as error:
            emit("tool_call", **call, target=str(error), outcome="denied")
        except (ActionFailedError, OSError) as error:
            emit("tool_call", **call, target=str(error), outcome="failed")
            raise ActionFailedError(f"{name}: {error}") from error
        else:
            emit("tool_call", **call, target=target, outcome="ok")

    def leave(self, output: str, text: str) -> str:
        """Write the file of an output that the request asks for."""
        if output not in self.files:
            asked = ", ".join(self.files) or "none"
            raise ActionFailedError(f"no output '{output}' is asked for (asked for: {asked})")
        (self.outputs / self.files[output]).write_text(text)
        return self.files[output]

    def read_input(self, name: str) -> Any:
        """A JSON input by name."""
        if name not in self.inputs:
            raise ActionFailedError(f"there is no input '{name}'")
        try:
            return json.loads(self.inputs[name].read_text())
        except ValueError as error:
            raise ActionFailedError(f"input '{name}' is not JSON: {error}") from error


def write(player: Player, value: dict[str, Any]) -> str:
    """``write: {output, text | json}``."""
    text = value["text"] if "text" in value else _json(value["json"])
    return player.leave(value["output"], text)


def edit(player: Player, value: dict[str, Any]) -> str:
    """``edit: {file, find, replace}``, or ``{file, create}`` for a new file."""
    del player
    path = Path(value["file"])
    if "create" in value:
        if path.exists():
            raise ActionFailedError(f"{path} exists already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value["create"])
        return str(path)
    text = path.read_text()
    found = text.count(value["find"])
    if found != 1:
        raise ActionFailedError(f"{path}: the text to replace occurs {found} times, not once")
    path.write_text(text.replace(value["find"], value["replace"]))
    return str(path)


def edits(player: Player, value: str) -> str:
    """``edits: file.yaml``: a list of edits beside the playbook."""
    changes = read_yaml(player.folder / value)
    return ", ".join(dict.fromkeys(edit(player, change) for change in changes))


def experiment(player: Player, value: dict[str, Any]) -> str:
    """``experiment: {key.path: value}``: change keys, keep the rest and its comments."""
    from ruamel.yaml import YAML  # slow to import and seldom needed

    del player
    reader = YAML()
    path = Path(EXPERIMENT)
    document = reader.load(path)
    for key, new in value.items():
        *parents, last = key.split(".")
        place = document
        for parent in parents:
            if not isinstance(place.get(parent), dict):
                raise ActionFailedError(f"{EXPERIMENT} has no section '{parent}' (for '{key}')")
            place = place[parent]
        place[last] = new
    with path.open("w") as stream:
        reader.dump(document, stream)
    return EXPERIMENT


def review(player: Player, value: dict[str, Any]) -> str:
    """``review: {from_check, findings}``: what is open now, and which earlier findings are not."""
    findings = _check_findings(player) if value.get("from_check") else []
    findings += [_listed(item) for item in value.get("findings", []) if _still_there(item)]
    reported = {finding["id"] for finding in findings}
    earlier = player.read_input("findings") if "findings" in player.inputs else []
    resolved = [
        {**item, "status": "resolved"}
        for item in earlier
        if item["status"] == "open" and item["id"] not in reported
    ]
    summary = f"{len(findings)} open, {len(resolved)} resolved since the last round"
    return player.leave("review", _json({"summary": summary, "findings": [*findings, *resolved]}))


def report(player: Player, value: dict[str, Any]) -> str:
    """``report: {output, template}``: placeholders are filled from the JSON inputs, or it fails."""

    def fill(match: re.Match[str]) -> str:
        found = _look_up(player, match[1])
        return format(found, match[2]) if match[2] else _text(found)

    try:
        text = _PLACEHOLDER.sub(fill, value["template"])
    except (TypeError, ValueError) as error:
        raise ActionFailedError(f"placeholder: {error}") from error
    return player.leave(value["output"], text)


def crash(player: Player, value: int) -> str:
    """``crash: code``: end at once with this exit status."""
    del player
    emit("message", text=f"crashing with exit status {value}")
    sys.stdout.flush()
    os._exit(value)


def hang(player: Player, value: float) -> str:
    """``hang: seconds``: be silent for so long."""
    del player
    time.sleep(value)
    return f"{value} s"


def edit_protected(player: Player, value: str) -> str:
    """``edit_protected: path``: write where no patch may, and whatever the capabilities say."""
    del player
    path = Path(value)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write("# changed by the scripted product\n")
    return value


def silent_success(player: Player, value: object) -> str:
    """``silent_success: true``: claim success and leave nothing."""
    del player, value
    finish("success", "all done")
    raise SystemExit(0)


def spawn_daemon(player: Player, value: float) -> str:
    """``spawn_daemon: seconds``: leave a process in a session of its own behind."""
    del player
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", f"import time; time.sleep({value})"], start_new_session=True
    )
    return f"pid {child.pid}"


ACTIONS: dict[str, tuple[str, Callable[[Player, Any], str]]] = {
    "write": ("output", write),
    "edit": ("edit", edit),
    "edits": ("edit", edits),
    "experiment": ("edit", experiment),
    "review": ("output", review),
    "report": ("output", report),
    "crash": ("shell", crash),
    "hang": ("shell", hang),
    "edit_protected": ("shell", edit_protected),
    "silent_success": ("output", silent_success),
    "spawn_daemon": ("shell", spawn_daemon),
}


def _check_findings(player: Player) -> list[dict[str, Any]]:
    check = player.read_input("check")
    return [
        {
            "id": f"check-{item['id']}",
            "severity": "critical",
            "family": "none",
            "status": "open",
            "claim": f"{item['id']} {item['title']}: {item['status']}",
            "evidence": _measured(item),
            "suggested_check": f"preflight {item['id']}",
        }
        for item in check["invariants"]
        if item["status"] != "passed"
    ]


def _measured(item: dict[str, Any]) -> str:
    measured = item.get("measured")
    numbers = f" (measured: {json.dumps(measured, sort_keys=True)})" if measured else ""
    return f"{item.get('detail') or 'no detail given'}{numbers}"


def _listed(item: dict[str, Any]) -> dict[str, Any]:
    finding = {key: value for key, value in item.items() if key != "unless_fixed"}
    return {**finding, "status": "open"}


def _still_there(item: dict[str, Any]) -> bool:
    place = item.get("unless_fixed")
    if place is None:
        return True
    path = Path(place["file"])
    return path.is_file() and place["find"] in path.read_text()


def _look_up(player: Player, dotted: str) -> Any:
    name, *keys = dotted.split(".")
    value = player.turn if name == "turn" else player.read_input(name)
    for key in keys:
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ActionFailedError(f"placeholder {{{dotted}}}: there is no '{key}'") from None
    if value is None:
        raise ActionFailedError(f"placeholder {{{dotted}}} has no value")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_yaml(path: Path) -> Any:
    """A YAML file, by the parser in C where there is one: every invocation waits for it."""
    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def emit(kind: str, **fields: Any) -> None:
    """One event line on standard output."""
    sys.stdout.write(json.dumps({"type": kind, **fields}) + "\n")
    sys.stdout.flush()


def finish(status: str, text: str, usage: dict[str, Any] | None = None) -> None:
    """The final report: there is no model behind this product, so only what is made up costs."""
    nothing = dict.fromkeys(("input", "cache_read", "cache_write", "output", "reasoning"), 0)
    emit(
        "usage", **(usage or {**nothing, "usd": 0.0}), source="final", complete=True, model_calls=0
    )
    emit("final", status=status, text=text)


def chosen_step(steps: list[dict[str, Any]], turn: dict[str, Any]) -> dict[str, Any] | None:
    """The first step whose ``when`` fits."""
    for step in steps:
        if all(turn.get(key) == value for key, value in step.get("when", {}).items()):
            return step
    return None


def main() -> int:
    """Play the step that fits the request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--playbook", type=Path, required=True)
    parser.add_argument("--request", type=Path, required=True)
    options = parser.parse_args()
    request = json.loads(options.request.read_text())
    prompt = sys.stdin.read()
    emit("started", product="scripted", prompt_characters=len(prompt))
    step = chosen_step(read_yaml(options.playbook)["steps"], request["turn"])
    if step is None:
        finish("error", f"the playbook has no step for {json.dumps(request['turn'])}")
        return 1
    usage = step.get("usage", {})
    try:
        if usage:
            emit("usage", **usage)
        Player(options.playbook, request).play(step["do"])
    except ActionFailedError as error:
        finish("error", str(error), usage)
        return 1
    finish("success", f"{len(step['do'])} actions played", usage)
    return 0


if __name__ == "__main__":
    sys.exit(main())
