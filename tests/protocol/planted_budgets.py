"""Faults in budgets: what does not fit, what nobody measures, what is left out."""

from __future__ import annotations

from planted_faults import Fault

_READER = "nodes: {reader: scripted, writer: scripted}\ntools: [read]\n"
_BASE = "with: {seeds: [1, 2]}\n"
BUDGET_FAULTS = [
    Fault("EOP501", "actions: 100,", "actions: 251,", "251", "251 x 4 branches = 1004"),
    Fault("EOP501", "wall: 30m", "wall: 3h", "3h"),
    Fault(
        "EOP520",
        "{implementer: scripted,",
        "{implementer: {product: scripted, budget: {actions: 101}},",
        "101",
        "101 of 'implementer' does not fit into the phase's 100",
    ),
    Fault(
        "EOP520",
        "{implementer: scripted,",
        "{implementer: {product: scripted, budget: {attempts: 9}},",
        "9",
        "attempts 9 of 'implementer' does not fit into the phase's 2",
    ),
    Fault(
        "EOP520",
        "{implementer: scripted,",
        "{implementer: {product: scripted, budget: {wall: 9h}},",
        "9h",
        "wall 32400 s of 'implementer' does not fit into the phase's 1800 s",
    ),
    Fault(
        "EOP521",
        "budget: {wall: 5m}\ngoto",
        "budget: {wall: 5m, usd: 0.5}\ngoto",
        "0.5",
        "a function spends no usd",
    ),
    Fault(
        "EOP522",
        f"{_READER}budget: {{actions: 5, wall: 5m}}\n",
        _READER,
        "look",
        "no actions and no wall of its own",
    ),
    Fault("EOP522", "wall: 30m, attempts: 2", "attempts: 2", "budget", "no wall of its own"),
    Fault(
        "EOP522",
        f"{_BASE}budget: {{wall: 5m}}\noutputs: {{baseline",
        f"{_BASE}outputs: {{baseline",
        "base",
        "no wall of its own",
    ),
]
