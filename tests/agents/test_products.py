"""Command lines of the real products: pinned, without secrets in argv, only what is allowed."""

from __future__ import annotations

import json
import stat
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eop.agents.contract import Endpoint, Expected, Limits, Mode, Prior, Request, Turn
from eop.agents.jail import Level
from eop.agents.products import REAL
from eop.agents.products.program import Settings, read_settings
from eop.core.errors import EopError
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.protocol.products import PRODUCTS, TOOLS, UNDENIABLE

if TYPE_CHECKING:
    from eop.agents.contract import Command

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdict"],
    "properties": {"verdict": {"type": "string"}},
}
REVIEW = (Expected("review", "review.json", SCHEMA),)
TOKEN = "tok-12345"
CONFIG_SCHEMA = Path(__file__).parents[2] / "config/schemas/config.schema.yaml"


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "bin/agent"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\necho 'agent-cli 1.2.3 (build 9)'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def request(folder: Path, **changes: Any) -> Request:
    (folder / "attempt/home").mkdir(parents=True, exist_ok=True)
    values: dict[str, Any] = {
        "turn": Turn("run", "node", "implement", "implementer", 1),
        "product": "p",
        "task": "Do it.",
        "directory": folder / "attempt",
        "store": folder / "store",
        "base": "0" * 40,
        "mode": Mode.WRITE,
        "editable": ("models/**",),
        "capabilities": ("read", "edit", "shell"),
        "limits": Limits(actions=20, usd=0.5),
        "inputs": (Prior("check", folder / "attempt/inputs/check.json", "0" * 64),),
        "endpoint": Endpoint("http://127.0.0.1:9", TOKEN),
    }
    return Request(**{**values, **changes})


def command(name: str, binary: Path, asked: Request) -> Command:
    return REAL[name](Settings(str(binary), "the-model")).command(asked)


def test_protocols_know_the_same_products() -> None:
    assert set(PRODUCTS) == {*REAL, "scripted", "scripted-peer"}
    for name, make in REAL.items():
        product = make(Settings("-", "-"))
        assert (product.name, product.trusted) == (name, False)
        assert product.capabilities == PRODUCTS[name]


def test_each_product_names_its_vendor() -> None:
    vendors = {name: make(Settings("-", "-")).vendor for name, make in REAL.items()}
    assert vendors == {
        "claude-code": "anthropic", "codex": "openai", "openhands": "openhands",
        "opencode": "opencode", "qwen-code": "qwen",
    }  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_the_token_is_in_the_environment_only(name: str, tmp_path: Path, binary: Path) -> None:
    made = command(name, binary, request(tmp_path))
    assert TOKEN not in "\0".join(made.argv)
    assert [key for key, value in made.env.items() if TOKEN in value] == [
        key for key, value in made.env.items() if value == TOKEN
    ]
    assert TOKEN in made.env.values()
    assert TOKEN not in json.dumps(request(tmp_path).to_json())
    assert TOKEN not in repr(request(tmp_path))
    assert "Do it." not in made.argv
    assert any("the-model" in word for word in (*made.argv, *made.env.values()))
    assert binary in made.read


@pytest.mark.parametrize("name", REAL)
def test_version_and_digest_are_told_and_a_pin_holds(name: str, binary: Path) -> None:
    facts = REAL[name](Settings(str(binary), "m", version="1.2.3")).probe()
    assert (facts.name, facts.version, len(facts.sha256)) == (name, "1.2.3", 64)
    with pytest.raises(EopError, match=r"is version 1\.2\.3, pinned is 9\.9"):
        REAL[name](Settings(str(binary), "m", version="9.9")).probe()
    with pytest.raises(EopError, match="no program /nowhere"):
        REAL[name](Settings("/nowhere/agent", "m")).probe()


def test_the_key_is_the_gateways_and_a_product_is_not_started_without_one(
    tmp_path: Path, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(str(binary), "m", url="https://model", key_env="MODEL_KEY")
    monkeypatch.delenv("MODEL_KEY", raising=False)
    with pytest.raises(EopError, match="MODEL_KEY is not set"):
        settings.upstream("codex")
    monkeypatch.setenv("MODEL_KEY", "k")
    assert settings.upstream("codex") == Endpoint("https://model", "k")
    with pytest.raises(ValueError, match="no endpoint"):
        command("codex", binary, request(tmp_path, endpoint=None))


def following(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_claude_has_the_tools_of_its_capabilities_only(tmp_path: Path, binary: Path) -> None:
    argv = command("claude-code", binary, request(tmp_path)).argv
    assert following(argv, "--tools") == "Read,Grep,Glob,Edit,Write,Bash"
    allowed = argv[argv.index("--allowedTools") + 1 :]
    # A bare Edit or Write would allow writing anywhere.
    assert {"Edit", "Write", "Read"}.isdisjoint(allowed)
    assert {"Edit(./**)", "Read(./**)", "Bash"} <= set(allowed)
    assert following(argv, "--setting-sources") == ""
    assert following(argv, "--max-turns") == "25"
    # Dollars are the gateway's: the product would count by prices of its own.
    assert "--max-budget-usd" not in argv
    assert "--json-schema" not in argv


def test_claude_reviews_without_any_way_to_write(tmp_path: Path, binary: Path) -> None:
    asked = request(tmp_path, mode=Mode.READ_ONLY, capabilities=("read",), outputs=REVIEW)
    argv = command("claude-code", binary, asked).argv
    assert following(argv, "--tools") == "Read,Grep,Glob"
    assert json.loads(following(argv, "--json-schema")) == SCHEMA
    assert not [word for word in argv if word.startswith(("Edit", "Bash"))]
    several = replace(asked, outputs=(*REVIEW, Expected("notes", "notes.md")))
    argv = command("claude-code", binary, several).argv
    assert [word for word in argv if word.startswith("Edit(")] == [
        f"Edit(/{tmp_path}/attempt/outputs/**)"
    ]


def test_codex_is_held_by_its_sandbox(tmp_path: Path, binary: Path) -> None:
    made = command("codex", binary, request(tmp_path, outputs=(Expected("n", "n.md"),)))
    assert following(made.argv, "-s") == "workspace-write"
    assert made.argv[-1] == "-"
    assert "--ephemeral" not in made.argv
    roots = f'sandbox_workspace_write.writable_roots=["{tmp_path}/attempt/outputs"]'
    assert roots in made.argv
    assert "--trust" not in made.argv
    assert Path(made.env["CODEX_HOME"]).is_dir()
    asked = request(tmp_path, mode=Mode.READ_ONLY, capabilities=("read", "shell"), outputs=REVIEW)
    argv = command("codex", binary, asked).argv
    assert following(argv, "-s") == "read-only"
    assert json.loads(Path(following(argv, "--output-schema")).read_text()) == SCHEMA


def test_codex_leaves_it_to_a_jail_in_which_its_sandbox_cannot_start(
    tmp_path: Path, binary: Path
) -> None:
    for level, sandbox in ((Level.LANDLOCK, "danger-full-access"), (None, "workspace-write")):
        argv = command("codex", binary, request(tmp_path, jail=level)).argv
        assert following(argv, "-s") == sandbox


def test_a_program_that_needs_a_home_tells_its_version(tmp_path: Path) -> None:
    path = tmp_path / "agent"
    path.write_text('#!/bin/sh\nmkdir "$HOME/.agent" && echo 1.2.3\n')
    path.chmod(0o700)
    assert REAL["opencode"](Settings(str(path), "m")).probe().version == "1.2.3"


def test_openhands_is_started_by_the_python_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the link leads to knows nothing of the environment in which the SDK is."""
    base = tmp_path / "base"
    base.write_text("#!/bin/sh\ncase $0 in */env/bin/python) echo 1.58.2 ;; esac\n")
    base.chmod(0o700)
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").symlink_to(base)
    monkeypatch.chdir(tmp_path)
    product = REAL["openhands"](Settings("env/bin/python", "m", version="1.58.2"))
    assert product.probe().version == "1.58.2"
    made = product.command(request(tmp_path))
    assert made.argv[0] == str(tmp_path / "env/bin/python")
    assert {base, tmp_path / "env"} <= set(made.read)


@pytest.mark.parametrize(
    ("name", "capabilities", "mode"),
    [
        ("codex", ("read", "edit"), Mode.WRITE),
        ("codex", ("read",), Mode.READ_ONLY),
        ("openhands", ("read", "shell"), Mode.WRITE),
        ("openhands", ("shell",), Mode.READ_ONLY),
    ],
)
def test_what_a_product_cannot_be_denied_must_be_allowed(
    name: str, capabilities: tuple[str, ...], mode: Mode, tmp_path: Path, binary: Path
) -> None:
    with pytest.raises(EopError, match="cannot be denied"):
        command(name, binary, request(tmp_path, capabilities=capabilities, mode=mode))


@pytest.mark.parametrize("name", REAL)
def test_a_protocol_is_refused_what_its_nodes_would_be(
    name: str, tmp_path: Path, binary: Path
) -> None:
    """What the compiler knows of a product agrees with the product, for every set of tools."""
    for size in range(1, len(TOOLS) + 1):
        for tools in combinations(TOOLS, size):
            mode = Mode.WRITE if "edit" in tools else Mode.READ_ONLY
            refused = not UNDENIABLE.get(name, {}).keys() <= set(tools)
            asked = request(tmp_path, capabilities=tools, mode=mode)
            with pytest.raises(EopError, match="denied") if refused else nullcontext():
                command(name, binary, asked)


def test_openhands_gets_a_terminal_only_with_the_shell(tmp_path: Path, binary: Path) -> None:
    asked = request(tmp_path, capabilities=("read", "edit"))
    spec = json.loads(command("openhands", binary, asked).argv[-1])
    assert (spec["tools"], spec["iterations"]) == (["file_editor"], 20)
    assert "usd" not in spec
    reads = replace(asked, mode=Mode.READ_ONLY, capabilities=("read", "shell"))
    spec = json.loads(command("openhands", binary, reads).argv[-1])
    assert spec["tools"] == ["file_editor", "terminal"]


def test_opencode_asks_for_nothing(tmp_path: Path, binary: Path) -> None:
    asked = request(tmp_path, mode=Mode.READ_ONLY, capabilities=("read",), outputs=REVIEW)
    made = command("opencode", binary, asked)
    permission = json.loads(made.env["OPENCODE_CONFIG_CONTENT"])["permission"]
    assert (permission["read"], permission["edit"], permission["bash"]) == (
        "allow", {"*": "deny"}, "deny",
    )  # fmt: skip
    assert permission["external_directory"]["*"] == "deny"
    assert '"ask"' not in json.dumps(permission)


def test_opencode_gets_nothing_from_the_repository(tmp_path: Path, binary: Path) -> None:
    asked = request(tmp_path)
    made = command("opencode", binary, asked)
    assert {"OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_DISABLE_CLAUDE_CODE"} <= made.env.keys()
    (tmp_path / "attempt/workspace/.opencode").mkdir(parents=True)
    with pytest.raises(EopError, match="whose plugins opencode would run"):
        command("opencode", binary, asked)


def test_qwen_lacks_the_tools_that_are_not_allowed(tmp_path: Path, binary: Path) -> None:
    asked = request(tmp_path, mode=Mode.READ_ONLY, capabilities=("read",), outputs=REVIEW)
    argv = command("qwen-code", binary, asked).argv
    assert following(argv, "--exclude-tools") == "edit,write_file,run_shell_command"
    assert "--exclude-tools" not in command("qwen-code", binary, request(tmp_path)).argv


def test_settings_come_from_the_workflow_config() -> None:
    given = {"binary": "claude", "model": "m", "version": "2.1.332", "package_dirs": ["/opt/a"]}
    config = {"protocol": "p", "dataset": "d", "threads": 1, "tolerance": 0, "isolation": "auto",
              "commit": False, "allow_unsafe": 0, "agents": {"claude-code": given}}  # fmt: skip
    assert problems(config, read_yaml(CONFIG_SCHEMA)) == []
    settings = read_settings("claude-code", given)
    assert (settings.version, settings.package_dirs) == ("2.1.332", (Path("/opt/a"),))
    config["agents"] = {"claude-code": {"binary": "claude", "modle": "m"}}
    assert "model" in "; ".join(problems(config, read_yaml(CONFIG_SCHEMA)))
    with pytest.raises(EopError, match="settings are not given"):
        read_settings("codex", None)
