"""How each fenced block of a page is tested: by what its fence says, else by this table.

``sh`` and ``console`` of a tutorial are typed, its ``text`` is compared (``test_tutorials.py``).
Elsewhere each ``sh`` and ``text`` has a line in ``TABLE``: the test that plays it, or why nothing
does; its command lines are parsed all the same (``test_command_lines.py``). What else a fence may
say, ``test_snippets.py`` has a test for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from doc_pages import Block

# What the fence says is how the block is tested, wherever it stands ...
BY_FENCE = {
    "mermaid": "tests/test_readme.py",
    "yaml": "tests/docs/test_snippets.py",
    "markdown": "tests/docs/test_snippets.py",
    "python": "tests/docs/test_tutorials.py",
    "console": "tests/docs/test_snippets.py",
}
# ... and in a tutorial.
IN_TUTORIALS = dict.fromkeys(("sh", "console", "text"), "tests/docs/test_tutorials.py")
FENCES = {*BY_FENCE, *IN_TUTORIALS, "json"}
DIRECTIVES = "tests/docs/test_pages_build.py"


@dataclass(frozen=True)
class Played:
    """Another test plays the block or compares it with what is printed."""

    by: str


@dataclass(frozen=True)
class Typed:
    """Typed in the project of the tutorial ``after``, with other words where some do not fit."""

    after: str
    instead: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Unplayed:
    """Nothing plays the block; ``why`` says what that would need."""

    why: str


FIRST, REPRODUCE, IDEAS = (
    f"docs/tutorials/{name}.md" for name in ("first-run", "reproduce", "intervention")
)
INSTALLS = Unplayed("downloads and installs; every run of CI begins with it")
ML_1M = Unplayed("needs MovieLens-1M, which may not be shipped, and hours of training")
ML_100K = Unplayed("needs MovieLens-100K, which may not be shipped")
FOURSQUARE = Unplayed("needs Foursquare's check-ins, which may not be shipped")
GPUS = Unplayed("needs GPUs; tests/hstu_gpu has what a CPU can show of them")
MEASURES = Unplayed(
    "measures for minutes to hours; tests/test_benchmarks.py runs the programs small"
)
DRAWING = Unplayed("a drawing")
README = Played("tests/test_readme.py")
SNIPPETS = Played("tests/docs/test_snippets.py")
GATES = Played("tests/runtime/test_gates_page.py")
AGENTS = Played("tests/agents/test_agents_page.py")
DEMO = Played("tests/workflow/test_demo.py")
PRODUCTS = Played("tests/products/test_iteration.py")
SLURM = Played("tests/workflow/test_slurm.py")

# By page and the beginning of the block.
TABLE: Mapping[tuple[str, str], Played | Typed | Unplayed] = {
    ("README.md", "git clone "): INSTALLS,
    ("README.md", "synthetic, split "): DEMO,
    ("README.md", "make data "): ML_100K,
    ("README.md", "GATE CLOSED: "): ML_100K,
    ("README.md", "ml-100k, split "): ML_100K,
    ("README.md", "$ eop check config/protocols/minimal.eop.md"): README,
    ("README.md", "$ eop check wrong.eop.md"): README,
    ("README.md", "# MovieLens-1M is yours to fetch"): ML_1M,
    ("README.md", "dvc pull "): Played("tests/docs/test_tutorials.py"),
    ("CONTRIBUTING.md", "git clone "): INSTALLS,
    ("docs/agents.md", "claude -p "): AGENTS,
    ("docs/agents.md", "codex exec "): AGENTS,
    ("docs/agents.md", "python -I openhands_program.py "): AGENTS,
    ("docs/agents.md", "$ python -m eop.agents.jail"): AGENTS,
    ("docs/architecture.md", "protocol.eop.md --parse, check--> "): DRAWING,
    ("docs/architecture.md", "config/config.yaml "): DRAWING,
    ("docs/architecture.md", "python -m hstu data split "): SNIPPETS,
    ("docs/gpu.md", "hstu train "): GPUS,
    ("docs/gpu.md", "torchrun "): GPUS,
    ("docs/howto/cluster.md", "pip install "): SLURM,
    ("docs/howto/dvc.md", "dvc pull "): Typed(REPRODUCE),
    ("docs/howto/dvc.md", "dvc repro split@"): Typed(REPRODUCE),
    ("docs/howto/dvc.md", "dvc repro -f "): Typed(REPRODUCE, {"<id>": "demo-synthetic-popularity"}),
    ("docs/howto/dvc.md", "dvc metrics show"): Typed(REPRODUCE),
    ("docs/howto/dvc.md", "eop store index"): Typed(REPRODUCE),
    ("docs/howto/gates.md", "eop gate list "): GATES,
    ("docs/howto/gates.md", "alice@example.org "): GATES,
    ("docs/howto/gates.md", "echo "): GATES,
    ("docs/howto/real-agents.md", "make products"): INSTALLS,
    ("docs/howto/real-agents.md", "sed "): PRODUCTS,
    ("docs/howto/real-agents.md", "eop doctor "): Played("tests/driver/test_doctor.py"),
    ("docs/howto/real-agents.md", "eop run "): PRODUCTS,
    ("docs/howto/real-agents.md", "eop status"): PRODUCTS,
    ("docs/howto/report.md", "eop report "): Typed(FIRST, {"--watch": ""}),
    ("docs/howto/report.md", "eop plot "): Typed(FIRST),
    ("docs/howto/report.md", "snakemake --report "): Typed(FIRST),
    ("docs/howto/terminal.md", "demo-synthetic  at work "): Unplayed("a moment in a training"),
    ("docs/howto/terminal.md", "eval "): Played("tests/driver/test_completion.py"),
    ("docs/hstu.md", "# ratings.dat and movies.dat "): Typed(
        IDEAS, {"ml-1m": "synthetic", "judged/film": "judged/side-features"}
    ),
    ("docs/knowledge.md", "eop knowledge "): Typed(
        FIRST, {"with-memory without-memory": "demo-synthetic demo-synthetic"}
    ),
    ("docs/performance.md", "make bench "): MEASURES,
    ("docs/performance.md", "python -m benchmarks "): MEASURES,
    ("docs/performance.md", "python3 -m venv "): INSTALLS,
    ("docs/protocol.md", "eop check "): Played("tests/workflow/test_gates.py"),
    ("docs/protocol.md", "{"): Played("tests/protocol/test_protocol_docs.py"),
    ("docs/results.md", "eop run "): ML_1M,
    ("docs/results.md", "B=leaderboard/"): ML_1M,
    ("docs/results.md", "hstu data split --source data/raw/ml-1m --out data/splits/ml-1m\n"): ML_1M,
    ("docs/results.md", "hstu data split --source data/raw/ml-1m --out data/splits/ml-1m "): ML_1M,
    ("docs/results.md", "hstu data split --source data/raw/foursquare-nyc "): FOURSQUARE,
    ("docs/scale.md", "python -c "): MEASURES,
    ("docs/statistics.md", "demo-synthetic, synthetic"): DEMO,
    ("docs/statistics.md", "python tests/leaderboard/simulated_turns.py"): Unplayed(
        "simulates for minutes; tests/leaderboard/test_promotion_rates.py does it small"
    ),
    ("docs/testing.md", "make mutants"): Unplayed("takes hours, and downloads what makes mutants"),
}


def ways(block: Block) -> list[Played | Typed | Unplayed | str]:
    """What tests a block: the line of the table, else the tests that its fence stands for."""
    lines = [way for key, way in TABLE.items() if names(key, block)]
    if lines:
        return lines
    found = [DIRECTIVES] if block.info.startswith("{") else []
    if block.page.startswith("docs/tutorials/") and block.info in IN_TUTORIALS:
        found.append(IN_TUTORIALS[block.info])
    elif block.info in BY_FENCE:
        found.append(BY_FENCE[block.info])
    return found


def names(key: tuple[str, str], block: Block) -> bool:
    """Whether a line of the table is about this block."""
    page, beginning = key
    return block.page == page and f"{block.text}\n".startswith(beginning)
