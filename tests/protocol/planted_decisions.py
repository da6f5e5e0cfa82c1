"""Faults in what a protocol decides by: expressions, guards, ways back, optional phases."""

from __future__ import annotations

from planted_faults import Fault

_BASE = "with: {seeds: [1, 2]}\nbudget: {wall: 5m}\noutputs: {baseline"
DECISION_FAULTS = [
    Fault("EOP118", "when: preflight.passed", "when: preflight.passed and", "d", "the end"),
    Fault("EOP118", "when: preflight.passed", "when: 1 < patience < 3", "<", "'<'"),
    Fault("EOP118", "when: preflight.passed", "when: open('x')", "open", "no function"),
    Fault("EOP118", "when: preflight.passed", "when: >\n  preflight.passed", ">", "one line"),
    Fault("EOP212", "n < patience", "n < patence", "patence"),
    Fault("EOP212", "when: preflight.passed", "when: preflight", "preflight", "is an artifact"),
    Fault("EOP212", "when: preflight.passed", "when: 'not (tru)'", "tru"),
    Fault("EOP203", "when: preflight.passed", "when: preflght.passed", "preflght"),
    Fault("EOP213", "when: preflight.passed", "when: preflight.pased", "pased", "no field"),
    Fault(
        "EOP213",
        "when: preflight.passed",
        'when: "1 > \\u0031 + preflight.invariants"',
        "invariants",
    ),
    Fault("EOP213", "n < patience", "n < len(decision.parents)", "parents"),
    Fault("EOP302", "when: preflight.passed", "when: preflight.schema == 'prefligt'", "'prefligt'"),
    Fault("EOP304", "  patience: {", "  iteration: {", "iteration", "of its own"),
    Fault("EOP311", "when: preflight.passed", "when: patience", "patience", "boolean"),
    Fault("EOP311", "when: preflight.passed", "when: 'preflight.passed in [1, true]'", "1"),
    Fault("EOP311", "when: preflight.passed", "when: patience + 'x' > 2", "'x'"),
    Fault("EOP404", "{to: promote, when", "{to: publish, when", "publish"),
    Fault("EOP407", "{to: promote, when", "{to: look, when", "look"),
    Fault("EOP414", "goto: propose\nmax", "until: false\ngoto: propose\nmax", "until"),
    Fault("EOP418", "{to: promote, when", "{to: build, when", "build"),
    Fault(
        "EOP418",
        "when: preflight.passed",
        "goto: {to: build, when: preflight.passed, max: 2}",
        "goto",
    ),
    Fault(
        "EOP416",
        "for_each: idea\nfunction: evaluate",
        "for_each: idea\non_branch: [completed, skipped]\nfunction: evaluate",
        "on_branch",
        "never left what it works on",
    ),
    Fault("EOP416", "\nwhen: preflight.passed", "", "train", "'preflight.passed' is false"),
    Fault(
        "EOP416",
        "when: preflight.passed",
        "when: preflight.passed or patience > 1",
        "preflight.passed or patience > 1",
        "'preflight.passed' is false",
    ),
    Fault("EOP416", "when: preflight.passed", "when: not preflight.passed", "not preflight.passed"),
    Fault("EOP507", "when: preflight.passed", "when: metrics.users > 1", "metrics.users"),
    Fault(
        "EOP507",
        _BASE,
        f"when: branches > 1\n{_BASE}",
        "branches",
        "are opened by 'build', which 'base'",
    ),
    Fault("EOP508", "n < patience", "n < patience and preflight.passed", "preflight.passed"),
    Fault("EOP511", "phase: look", "phase: look\noptional: true", "report", "is optional"),
    Fault("EOP511", "phase: train", "phase: train\noptional: true", "evaluate", "'checkpoint'"),
]
