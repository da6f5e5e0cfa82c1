"""A sound protocol, and one planted fault per way to break it: what is changed, what is shown."""

from __future__ import annotations

from dataclasses import dataclass

SOUND = """\
---
eop: 1
name: sound
version: 0.1.0
target: hstu
context: body
variables:
  patience: {type: integer, default: 2}
budget: {actions: 1000, wall: 10h}
---

# A sound protocol

## Look

```eop
phase: look
pattern: linear
context: body
nodes: {reader: scripted, writer: scripted}
tools: [read]
budget: {actions: 5, wall: 5m}
outputs: {report: {file: report.md}}
```

Say what you see.

```eop
gate: agree
after: [look]
shows: [report]
on_reject: {goto: look, max: 2}
```

```eop
phase: base
needs: [agree]
function: baseline
with: {seeds: [1, 2]}
budget: {wall: 5m}
outputs: {baseline: {file: baseline.json}}
```

## Propose

```eop
phase: propose
needs: [base]
budget: {actions: 50, wall: 5m}
pattern: linear
nodes: {proposer: scripted}
tools: [read]
outputs: {proposals: {file: proposals.json, schema: proposals}}
```

Propose changes.

```eop
gate: approve
after: [propose]
shows: [proposals]
on_reject: {goto: propose, max: 3}
```

## Each proposal

```eop
phase: build
needs: [approve]
for_each: {item: idea, in: proposals, max: 4}
pattern: dual
nodes: {implementer: scripted, reviewer: scripted, fixer: scripted}
review: {until: minor, rounds: 2}
check: preflight
tools: [read, edit]
budget: {actions: 100, wall: 30m, attempts: 2}
outputs:
  patch: {file: patch.diff, patch: true}
  review: {file: review.json, schema: review}
```

Build it.

```eop
phase: preflight
needs: [build]
for_each: idea
function: preflight
budget: {wall: 5m}
outputs: {preflight: {file: preflight.json, schema: preflight}}
```

```eop
phase: train
needs: [preflight]
for_each: idea
function: train
with: {seeds: [1, 2]}
when: preflight.passed
budget: {wall: 5m}
outputs: {checkpoint: {file: checkpoint.json, schema: checkpoint}}
```

```eop
phase: evaluate
needs: [train]
for_each: idea
function: evaluate
resources: {cpus: 2, gpus: 1, ram: 4GB}
budget: {wall: 5m}
outputs: {metrics: {file: metrics.json, schema: metrics}}
```

```eop
phase: analyze
needs: [evaluate]
for_each: idea
on_branch: [completed, failed]
pattern: linear
nodes: {analyst: scripted}
tools: [read]
budget: {actions: 5, wall: 5m}
outputs: {analysis: {file: analysis.md}}
```

Say what happened.

## Close the turn

```eop
phase: promote
join: {of: analyze, wait: all, at_least: 1}
function: promote
budget: {wall: 5m}
outputs: {decision: {file: decision.json, schema: decision}}
```

```eop
phase: publish
needs: [promote]
function: publish
optional: true
budget: {wall: 5m}
goto: {to: promote, when: patience > 5, max: 1}
outputs: {rows: {file: rows.json}}
```

```eop
gate: confirm
after: [publish]
shows: [decision]
on_reject: {end: true}
```

```eop
loop: again
after: [confirm]
while: iterations_without_promotion < patience
goto: propose
max: 3
```
"""


@dataclass(frozen=True)
class Fault:
    """``find`` becomes ``replace``; then ``code`` is reported, its caret under ``caret``."""

    code: str
    find: str
    replace: str
    caret: str
    says: str = ""

    @property
    def text(self) -> str:
        """The faulty protocol."""
        if SOUND.count(self.find) != 1:
            raise ValueError(f"{self.find!r} is in the sound protocol {SOUND.count(self.find)}x")
        return SOUND.replace(self.find, self.replace)


_LOOK = "phase: look\npattern: linear"
FAULTS = [
    # syntax
    Fault("EOP104", "Say what you see.", "Say what\x07 you see.", "\x07", "U+0007"),
    Fault("EOP105", "---\neop: 1", "eop: 1", "eop: 1", "missing"),
    Fault("EOP105", "wall: 10h}\n---\n", "wall: 10h}\n", "---", "not closed"),
    Fault("EOP106", "```\n\nSay what you see.", "Say what you see.", "```eop", "before the next"),
    Fault("EOP106", "goto: propose\nmax: 3\n```\n", "goto: propose\nmax: 3\n", "```eop"),
    Fault("EOP107", "  patience:", "\tpatience:", "\t"),
    Fault("EOP108", "shows: [report]", "shows: [report", "[", "flow sequence"),
    Fault("EOP108", "needs: [agree]", "needs: agree: now", ":", "not allowed here"),
    Fault("EOP108", "function: publish\n", "function: publish\n---\n", "---", "second document"),
    Fault("EOP109", "needs: [agree]", "needs: [agree]\nneeds: [agree]", "needs", "twice"),
    Fault("EOP110", "needs: [agree]", "needs: &here [agree]", "&here", "anchor"),
    Fault("EOP110", "needs: [agree]", "needs: *there", "*there", "alias"),
    Fault("EOP110", "needs: [agree]", "needs: !!set [agree]", "!!set", "tag"),
    Fault(
        "EOP111", "phase: publish\nneeds: [promote]", "needs: [promote]\nphase: publish", "needs"
    ),
    Fault("EOP111", "loop: again", "lop: again", "lop"),
    Fault("EOP111", "## Close the turn", "```eop\n```\n\n## Close the turn", "```eop"),
    Fault("EOP112", "budget: {actions: 100,", "budgt: {actions: 100,", "budgt", "'budgt'"),
    Fault("EOP112", "attempts: 2}", "attempt: 2}", "attempt"),
    Fault("EOP112", "goto: propose\nmax: 3", "goto: propose\nmax: 3\nrecall: 4", "recall"),
    Fault("EOP112", "version: 0.1.0", "version: 0.1.0\nauthor: me", "author"),
    Fault("EOP113", "target: hstu\n", "", "1", "'target'"),
    Fault(
        "EOP113",
        "tools: [read]\nbudget: {actions: 5, wall: 5m}\noutputs: {rep",
        "budget: {actions: 5, wall: 5m}\noutputs: {rep",
        "look",
        "'tools'",
    ),
    Fault(
        "EOP113",
        "{item: idea, in: proposals",
        "{in: proposals",
        "{in: proposals, max: 4}",
        "'item'",
    ),
    Fault("EOP113", "in: proposals, ", "", "{item: idea, max: 4}", "'in'"),
    Fault("EOP113", "after: [confirm]\n", "", "again", "'after'"),
    Fault("EOP113", "outputs: {rows: {file: rows.json}}\n", "", "publish", "'outputs'"),
    Fault(
        "EOP114",
        "## Close the turn",
        "- ```eop\n  phase: listed\n  ```\n\n## Close the turn",
        "- ```eop",
    ),
    Fault("EOP115", "```eop\nloop: again", "```eop x\nloop: again", "```eop x"),
    Fault("EOP115", "```eop\nloop: again", "```EOP\nloop: again", "```EOP"),
    Fault("EOP115", "```eop\nphase: propose", "```epo\nphase: propose", "```epo"),
    Fault("EOP106", "idea\nfunction: train", "idea\n```eop\nfunction: train", "```eop"),
    Fault("EOP116", "Say what you see.\n\n", "", "look", "no prose"),
    # references
    Fault("EOP201", "needs: [base]", "needs: [bas]", "bas"),
    Fault("EOP201", "of: analyze", "of: analyse", "analyse"),
    Fault("EOP201", "after: [publish]", "after: [publsh]", "publsh"),
    Fault("EOP201", "goto: look", "goto: lok", "lok"),
    Fault("EOP201", "goto: propose\nmax", "goto: proposed\nmax", "proposed"),
    Fault("EOP202", "phase: publish", "phase: promote", "promote", "taken"),
    Fault("EOP202", "gate: confirm", "gate: look", "look"),
    Fault("EOP203", "shows: [report]", "shows: [reprt]", "reprt"),
    Fault("EOP203", "in: proposals", "in: proposal", "proposal"),
    Fault("EOP204", "{analyst: scripted}", "{analyst: scriptd}", "scriptd"),
    Fault("EOP205", "function: publish", "function: publsh", "publsh"),
    Fault("EOP205", "check: preflight", "check: preflght", "preflght"),
    Fault("EOP206", "pattern: dual", "pattern: dul", "dul"),
    Fault("EOP207", "reviewer: scripted, fixer", "reviewr: scripted, fixer", "reviewr"),
    Fault("EOP207", ", fixer: scripted", "", "nodes", "'fixer'"),
    Fault("EOP208", "schema: decision", "schema: decison", "decison", "does not exist"),
    Fault("EOP208", "schema: decision", "schema: damaged", "damaged", "not a JSON Schema"),
    Fault("EOP209", "target: hstu", "target: hst", "hst"),
    Fault("EOP210", "for_each: idea\nfunction: train", "for_each: idee\nfunction: train", "idee"),
    Fault("EOP211", "needs: [base]", "needs: [again]", "again", "is a loop"),
    Fault("EOP211", "goto: look", "goto: agree", "agree", "is a gate"),
    # types
    Fault("EOP301", "needs: [agree]", "needs: agree", "agree", "expected a list"),
    Fault("EOP301", "on_reject: {end: true}", "on_reject: end", "end"),
    Fault("EOP301", "function: publish", "[function]: publish", "[function]", "a key"),
    Fault("EOP301", "name: sound", "name: 7", "7", "expected a text"),
    Fault("EOP301", "rounds: 2", "rounds: two", "two", "whole number"),
    Fault("EOP301", "outputs: {rows: {file: rows.json}}", "outputs: [rows]", "[rows]"),
    Fault("EOP301", "patch: true", "patch: 1", "1", "true or false"),
    Fault(
        "EOP301",
        "with: {seeds: [1, 2]}\nbudget: {wall: 5m}\noutputs: {base",
        "with: [1]\nbudget: {wall: 5m}\noutputs: {base",
        "[1]",
    ),
    Fault("EOP302", "until: minor", "until: mayor", "mayor"),
    Fault("EOP302", "linear\ncontext: body", "linear\ncontext: all", "all"),
    Fault("EOP302", "wait: all", "wait: some", "some"),
    Fault("EOP302", "tools: [read, edit]", "tools: [read, edit, sheel]", "sheel"),
    Fault("EOP302", "on_reject: {end: true}", "on_reject: {end: false}", "false"),
    Fault("EOP303", "proposals, max: 4", "proposals, max: 100", "100"),
    Fault("EOP303", "goto: look, max: 2", "goto: look, max: 0", "0"),
    Fault("EOP303", "wait: all, at_least: 1", "wait: any, at_least: 0", "0", "between 1"),
    Fault("EOP304", "phase: look", "phase: p01_look", "p01_look"),
    Fault("EOP304", "loop: again", "loop: again_r2", "again_r2"),
    Fault("EOP304", "name: sound", "name: Sound", "Sound"),
    Fault("EOP304", "version: 0.1.0", "version: v1", "v1"),
    Fault("EOP305", "wall: 30m", "wall: 30 minutes", "30 minutes"),
    Fault("EOP305", "wall: 30m", "wall: 1800", "1800"),
    Fault("EOP312", "function: publish", "function: publish\nresources: {ram: 16G}", "16G"),
    Fault("EOP312", "function: publish", "function: publish\nresources: {ram: 0GB}", "0GB"),
    Fault("EOP303", "function: publish", "function: publish\nresources: {cpus: 0}", "0"),
    Fault("EOP303", "gpus: 1", "gpus: 8", "8", "one GPU, not on 8"),
    Fault("EOP303", "gpus: 1", "gpus: 9", "9", "between 1 and 8"),
    Fault("EOP303", "function: train", "function: train\nresources: {gpus: 9}", "9", "between"),
    Fault("EOP112", "function: publish", "function: publish\nresources: {gpu: 1}", "gpu"),
    Fault("EOP306", "eop: 1", "eop: 2", "2"),
    Fault("EOP307", "file: analysis.md", "file: ../analysis.md", "../analysis.md"),
    Fault("EOP308", "default: 2", "default: two", "two"),
    Fault("EOP308", "default: 2", "default: true", "true"),
    Fault("EOP309", "needs: [agree]", "needs: []", "[]"),
    Fault("EOP309", "outputs: {rows: {file: rows.json}}", "outputs: {}", "{}"),
    Fault("EOP310", "tools: [read, edit]", "tools: [read, edit, read]", "read"),
    # control flow
    Fault("EOP401", _LOOK, f"phase: look\nneeds: [look]\n{_LOOK[12:]}", "look", "look -> look"),
    Fault("EOP401", _LOOK, f"phase: look\nneeds: [base]\n{_LOOK[12:]}", "base"),
    Fault("EOP402", "needs: [agree]", "needs: [look]", "base", "gate 'agree'"),
    Fault("EOP402", "needs: [approve]", "needs: [propose]", "build", "gate 'approve'"),
    Fault("EOP403", "needs: [agree]\n", "", "agree", "nothing waits"),
    Fault("EOP406", "after: [confirm]", "after: [publish]", "confirm"),
    Fault("EOP404", "{goto: look, max: 2}", "{goto: base, max: 2}", "base"),
    Fault("EOP404", "after: [confirm]", "after: [agree]", "propose"),
    Fault(
        "EOP405",
        "```eop\nloop: again",
        "```eop\nloop: first\nafter: [confirm]\ngoto: propose\nmax: 2\n```\n\n```eop\nloop: again",
        "again",
    ),
    Fault("EOP406", "after: [publish]\nshows", "after: [promote]\nshows", "publish"),
    Fault("EOP407", "on_reject: {end: true}", "on_reject: {goto: look, max: 1}", "look"),
    Fault("EOP409", "needs: [build]", "needs: [approve]", "idea", "not after 'build'"),
    Fault("EOP410", "needs: [promote]", "needs: [promote, evaluate]", "[promote, evaluate]"),
    Fault("EOP410", "after: [publish]", "after: [publish, train]", "[publish, train]"),
    Fault("EOP410", "{goto: propose, max: 3}", "{goto: build, max: 3}", "build"),
    Fault("EOP410", "goto: propose\nmax", "goto: build\nmax", "build"),
    Fault("EOP411", "of: analyze", "of: base", "base"),
    Fault("EOP411", "phase: promote", "phase: promote\nfor_each: idea", "join"),
    Fault("EOP412", "of: analyze", "of: evaluate", "analyze"),
    Fault("EOP413", "function: publish\n", "", "publish", "neither"),
    Fault("EOP413", "function: publish", "function: publish\npattern: linear", "function", "both"),
    Fault("EOP414", "function: publish", "function: publish\ntools: [read]", "tools"),
    Fault("EOP414", "function: publish", "function: publish\nresources: {gpus: 1}", "1", "publish"),
    Fault("EOP414", "function: publish", "function: publish\ncontext: full", "context"),
    Fault("EOP414", "{analyst: scripted}", "{analyst: scripted}\nreview: {rounds: 1}", "review"),
    Fault("EOP414", "{analyst: scripted}", "{analyst: scripted}\nwith: {seeds: [1]}", "with"),
    Fault("EOP414", "phase: publish", "phase: publish\non_branch: [failed]", "on_branch"),
    Fault("EOP414", "{end: true}", "{end: true, max: 2}", "max", "contradicts"),
    Fault("EOP415", "at_least: 1", "at_least: 5", "5"),
    Fault("EOP416", "needs: [train]", "needs: [preflight]", "evaluate", "'train'"),
    Fault("EOP416", "join: {of: analyze, wait: all, at_least: 1}", "needs: [base]", "promote"),
    Fault("EOP416", "  patch: {file: patch.diff, patch: true}\n", "", "preflight", "check"),
    Fault("EOP417", "needs: [agree]\n", "", "base", "waits for nothing"),
    Fault(
        "EOP419",
        "idea\nfunction: train",
        "idea\nresources: {gpus: 2}\nfunction: train",
        "2",
        "'base' by 1, and their numbers are compared",
    ),
    # budgets, tools, artifacts
    Fault(
        "EOP303",
        "{actions: 1000, wall: 10h}",
        "{actions: 1000, wall: 10h, usd: 0.0000001}",
        "0.0000001",
        "six decimals",
    ),
    Fault("EOP502", "{analyst: scripted}", "{analyst: bounded}", "bounded"),
    Fault("EOP502", "{analyst: scripted}", "{analyst: codex}", "codex", "cannot be denied 'shell'"),
    Fault("EOP503", "tools: [read, edit]", "tools: [read]", "[read]"),
    Fault("EOP504", "patch: true}", "patch: true, schema: review}", "true"),
    Fault("EOP505", "file: review.json", "file: patch.diff", "patch.diff"),
    Fault("EOP506", "{analysis: {file", "{report: {file", "{file: analysis.md}"),
    Fault("EOP507", "shows: [report]", "shows: [decision]", "decision"),
    Fault("EOP507", "in: proposals", "in: decision", "decision"),
    Fault("EOP508", "shows: [decision]", "shows: [analysis]", "analysis"),
    Fault("EOP509", "in: proposals", "in: report", "report"),
    Fault("EOP510", "{file: rows.json}", "{file: row.json}", "outputs"),
]
