"""A project whose protocol is the baseline alone, with the resources that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Project

_PATH = "config/protocols/several.eop.md"
_PROTOCOL = """---
{{eop: 1, name: several, version: 0.1.0, target: hstu, budget: {{actions: 10, wall: 1h}}}}
---
```eop
phase: baseline
function: baseline
with: {{seeds: [1]}}
resources: {{{resources}}}
outputs: {{baseline: {{file: baseline.json}}}}
budget: {{wall: 5m}}
```
"""


def baseline_alone(project: Project, resources: str, **config: str) -> None:
    """Write the protocol and name it in the config; its run is ``several-synthetic``."""
    (project.root / _PATH).write_text(_PROTOCOL.format(resources=resources))
    project.configure(protocol=_PATH, **config)
