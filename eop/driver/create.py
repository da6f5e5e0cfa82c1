"""`eop init`: a project folder of one's own, from the files that this version ships with."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_text
from eop.project.config import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What a project consists of; a wheel carries all but the recommender under `eop/template`.
TEMPLATE = (
    *("Snakefile", "dvc.yaml", ".dvcignore", ".gitignore", ".dvc", "knowledge/entities.yaml"),
    *("config", "profiles", "rules", "scripts"),
)
_TARGET = "hstu"
_LEFT_OUT = ("__pycache__", "cache", "tmp", "config.local")


def create(folder: Path, *, protocol: str) -> None:
    """Fill ``folder``, new or empty, with a project that runs ``protocol``, and make it a git one.

    ``protocol`` is the name of one in ``config/protocols/``. Raises ``EopError``: EOP834 when the
    folder holds anything, EOP835 when there is no such protocol.
    """
    sources = dict(_sources())
    path = f"config/protocols/{protocol}.eop.md"
    if path not in sources:
        raise EopError(
            "EOP835",
            f"there is no protocol '{protocol}' to begin with",
            hint=f"one of: {', '.join(_protocols(sources))}",
            exit_code=ExitCode.USAGE,
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise EopError(
            "EOP834",
            "a project is made in a new or empty folder, and this one is neither",
            where=Where(str(folder)),
            hint="name another folder: eop init <folder>",
            exit_code=ExitCode.USAGE,
        )
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
    config = folder / CONFIG_FILE
    write_text(config, _with_protocol(config.read_text(), path))
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")


def shipped() -> list[str]:
    """Names of the protocols that a project may begin with."""
    return _protocols(dict(_sources()))


def git(folder: Path, *arguments: str) -> str:
    """What git prints; EOP833 when it fails."""
    return run(folder, ["git", *arguments])


def run(folder: Path, argv: Sequence[str]) -> str:
    """What a command prints; EOP833 when it fails or is not there."""
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        why = str(error)
    else:
        if done.returncode == 0:
            return done.stdout
        why = done.stderr.strip()
    raise EopError(
        "EOP833",
        f"`{' '.join(argv)}` failed: {why}",
        where=Where(str(folder)),
        exit_code=ExitCode.ENVIRONMENT,
    )


def _sources() -> Iterator[tuple[str, Path]]:
    """Each file of a new project: its name there, and where it lies now."""
    package = Path(str(files("eop")))
    packed = package / "template"
    root = packed if packed.is_dir() else package.parent
    for part in TEMPLATE:
        yield from _below(root, root / part)
    target = Path(str(files(_TARGET)))
    yield from _below(target.parent, target)


def _below(root: Path, path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_dir():
        for child in sorted(path.iterdir()):
            if child.name not in _LEFT_OUT:
                yield from _below(root, child)
    elif path.is_file():
        yield path.relative_to(root).as_posix(), path


def _protocols(sources: dict[str, Path]) -> list[str]:
    suffix = ".eop.md"
    return sorted(Path(name).name[: -len(suffix)] for name in sources if name.endswith(suffix))


def _with_protocol(config: str, path: str) -> str:
    lines = config.splitlines(keepends=True)
    return "".join(
        f"protocol: {path}\n" if line.startswith("protocol:") else line for line in lines
    )
