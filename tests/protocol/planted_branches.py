"""Planted faults of several fan-outs and of the joins over them."""

from __future__ import annotations

from planted_faults import Fault


def _second(needs: str, then: str = "needs: [sketch]") -> str:
    """A fan-out beside the one that is there, whose two phases have these needs, and its join."""
    agent = "pattern: linear\nnodes: {writer: scripted}\ntools: [read]\n"
    agent += "budget: {actions: 5, wall: 5m}\n"
    head = "for_each: {item: draft, in: proposals, max: 2}"
    steps = [
        f"phase: sketch\n{needs}\n{head}\n{agent}outputs: {{sketch: {{file: a.md}}}}",
        f"phase: polish\n{then}\nfor_each: draft\n{agent}outputs: {{polished: {{file: b.md}}}}",
        f"phase: collect\njoin: {{of: polish, wait: all}}\n{agent}outputs: {{all: {{file: c.md}}}}",
    ]
    return "".join(f"\n```eop\n{step}\n```\n\nWrite.\n" for step in steps)


BRANCH_FAULTS = [
    Fault(
        "EOP430",
        "for_each: idea\nfunction: train",
        "for_each: {item: idea, in: proposals, max: 2}\nfunction: train",
        "{item: idea, in: proposals, max: 2}",
        "opened by 'build' already",
    ),
    Fault(
        "EOP431",
        "## Close the turn\n",
        _second("needs: [approve, train]") + "## Close the turn\n",
        "train",
        "branches inside a branch",
    ),
    Fault(
        "EOP410",
        "## Close the turn\n",
        _second("needs: [approve]", "needs: [sketch, build]") + "## Close the turn\n",
        "build",
        "'polish' runs per 'draft'",
    ),
    Fault(
        "EOP432",
        "goto: propose\nmax: 3\n```\n",
        "goto: promote\nmax: 3\n```\n" + _second("needs: [base]", "needs: [sketch, publish]"),
        "promote",
        "'polish'",
    ),
    Fault(
        "EOP433",
        "```eop\nphase: promote\njoin: {of: analyze, wait: all, at_least: 1}",
        "```eop\nphase: told\njoin: {of: train, wait: all}\npattern: linear\ntools: [read]\n"
        "nodes: {teller: scripted}\nbudget: {actions: 5, wall: 5m}\n"
        "outputs: {told: {file: told.md}}\n```\n\nTell.\n\n"
        "```eop\nphase: promote\njoin: {of: analyze, wait: any}",
        "any",
        "'told' waits for",
    ),
    Fault(
        "EOP416",
        "## Close the turn\n\n```eop\nphase: promote\njoin: {of: analyze, wait: all, at_least: 1}",
        _second("needs: [approve]")
        + "\n```eop\nphase: gather\njoin: {of: analyze, wait: all}\npattern: linear\n"
        "nodes: {writer: scripted}\ntools: [read]\nbudget: {actions: 5, wall: 5m}\n"
        "outputs: {told: {file: d.md}}\n```\n\nTell.\n"
        "\n```eop\nphase: promote\nneeds: [gather]\njoin: {of: polish, wait: all}",
        "promote",
        "in another fan-out",
    ),
]
