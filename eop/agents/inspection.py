"""What an agent left, once all of its processes are dead: made safe to keep, and judged."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

from eop.agents import patch
from eop.agents.contract import Mode, Patch
from eop.agents.scan import Caps, scan
from eop.agents.target import outside
from eop.core.canonical import file_digest
from eop.core.files import write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eop.agents.contract import Change, Request
    from eop.agents.redact import Redactor
    from eop.agents.workspace import Workspace

PATCH_FILE = "patch.diff"
_SECRET = "held a secret, or was too big to be looked through"


def clean(space: Workspace, redactor: Redactor) -> None:
    """Take the secrets out of streams, HOME and TMPDIR, where a product may have them.

    The workspace's history goes: its hooks and settings would run on whoever looks at it with git.
    """
    for name in ("stdout", "stderr"):
        stream = space.directory / name
        if stream.is_file():
            redactor.file(stream)
    for folder in (space.home, space.tmp):
        redactor.tree(folder)
    history = space.tree / ".git"
    if history.is_dir() and not history.is_symlink():
        redactor.tree(history)  # for what the agent may have shut
        shutil.rmtree(history)


def inspect(
    request: Request, space: Workspace, redactor: Redactor, caps: Caps
) -> tuple[Patch, tuple[str, ...]]:
    """The change that was made, and every rule that it breaks; no secret enters the store."""
    violations = [*scan(space.tree, caps).problems]
    violations += _leaks(request, space, redactor)
    tree = patch.commit_tree(request.store, space.tree, caps)
    changes = patch.changes(request.store, request.base, tree)
    content = patch.diff(request.store, request.base, tree)
    if len(content) <= caps.patch_bytes:
        write_bytes(space.directory / PATCH_FILE, content)
    violations += _too_much(changes, len(content), caps)
    violations += _forbidden(request, [change.path for change in changes])
    made = Patch(request.base, tree, changes, len(content), hashlib.sha256(content).hexdigest())
    return made, tuple(redactor.text(line) for line in violations)


def _leaks(request: Request, space: Workspace, redactor: Redactor) -> Iterator[str]:
    """Secrets where they would be passed on; in its own HOME a product may keep them."""
    same = patch.unchanged(request.store, request.base, space.tree)
    for folder, spare in ((space.tree, same), (space.outputs, frozenset())):
        for path in redactor.tree(folder, spare):
            yield f"{path.relative_to(space.directory).as_posix()}: {_SECRET}"


def _too_much(changes: tuple[Change, ...], size: int, caps: Caps) -> Iterator[str]:
    if len(changes) > caps.patch_files:
        yield f"patch: {len(changes)} files, over the cap of {caps.patch_files}"
    if size > caps.patch_bytes:
        yield f"patch: {size} bytes, over the cap of {caps.patch_bytes}"


def _forbidden(request: Request, paths: list[str]) -> Iterator[str]:
    if request.mode is Mode.READ_ONLY:
        yield from (f"{path}: changed by a read-only node" for path in paths)
    else:
        yield from (f"{path}: protected" for path in outside(request.editable, paths))
    for prior in request.inputs:
        if not prior.path.is_file() or file_digest(prior.path) != prior.sha256:
            yield f"{prior.path.name}: input was changed"
