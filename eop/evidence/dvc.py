"""The one place that runs DVC: its command line, in an own session, with a deadline."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_if_changed
from eop.core.processes import run
from eop.core.yaml_files import read_yaml
from eop.evidence.store import StoreReport, check_store, md5_of, object_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONFIG = """\
[core]
    analytics = false
    autostage = false
    check_update = false{no_scm}
[cache]
    type = reflink,copy
"""
_UNTRACKED = "/config.local\n/tmp\n/cache\n"
_POINTED = ("data", "leaderboard")
# 0.8 MB that each machine makes for itself.
_PAGE = "tmp/plots.html"


@dataclass(frozen=True)
class StoredFile:
    """A file that DVC holds: path relative to the root, md5 (DVC's name for it), size in bytes."""

    path: str
    md5: str
    size: int

    @property
    def pointer(self) -> str:
        """The small file that git tracks in its place."""
        return f"{self.path}.dvc"


@dataclass(frozen=True)
class Pushed:
    """The objects of ``targets`` are at the remote ``remote``, and were looked for there."""

    remote: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class NoRemote:
    """Nothing was pushed: the project has no default remote. ``command`` adds one."""

    targets: tuple[str, ...]
    command: str = "dvc remote add --default storage <folder or url>"


class Dvc:
    """DVC for the project at ``root``. Paths are relative to it; its settings are read once.

    Every command waits for DVC's own lock, and ends with its whole process group after
    ``timeout_s`` seconds. A failure is an ``EopError`` that carries DVC's exit status and words.
    """

    def __init__(self, root: Path, *, timeout_s: float = 600.0) -> None:
        self.root = root.resolve()
        self._timeout_s = timeout_s

    @property
    def available(self) -> bool:
        """Whether DVC is installed beside this Python."""
        return importlib.util.find_spec("dvc") is not None

    @property
    def initialised(self) -> bool:
        """Whether ``root`` itself is a DVC project; one further up does not count."""
        return (self.root / ".dvc" / "config").is_file()

    def init(self) -> None:
        """Make ``root`` a DVC project with safe settings; a project that is one stays as it is.

        The files are written here because ``dvc init`` would stage them in the user's git index.
        """
        if self.initialised:
            return
        no_scm = "" if (self.root / ".git").exists() else "\n    no_scm = true"
        write_if_changed(self.root / ".dvc" / ".gitignore", _UNTRACKED)
        write_if_changed(self.root / ".dvc" / "config", _CONFIG.format(no_scm=no_scm))

    def add(
        self, paths: Sequence[str], *, sha256: Mapping[str, str] | None = None
    ) -> tuple[StoredFile, ...]:
        """Store finished files, all in one call, then read each stored object again.

        DVC can record one digest and store other bytes when a file is written meanwhile; that is
        ``EOP644``, as is a file whose bytes are not those of ``sha256`` (by path, hex): it is
        refused before a pointer says otherwise, and its stored object is compared with it too.
        Folders are refused (``EOP643``): single members can go missing unnoticed.
        """
        expected = sha256 or {}
        for path in paths:
            if not (self.root / path).is_file():
                raise EopError(
                    "EOP643",
                    "only an existing single file can be stored",
                    where=Where(path),
                    hint="pack a folder into one archive first",
                    exit_code=ExitCode.DATA,
                )
        for path, digest in expected.items():
            _same(self.root / path, path, digest)
        if not paths:
            return ()
        self._run("add", *paths)
        cache = self._cache(self._settings)
        stored = tuple(self._checked(self.pointed(f"{path}.dvc"), cache) for path in paths)
        for file in stored:
            if file.path in expected:
                _same(object_path(cache, file.md5), file.path, expected[file.path])
        return stored

    def push(self, targets: Sequence[str]) -> Pushed | NoRemote:
        """Copy the objects behind the pointers ``targets`` (``….dvc``) to the default remote.

        DVC skips an object that its cache lacks and still reports success; so the cache is read
        before, and the remote asked after.
        """
        settings = self._settings
        remote = settings.get("core.remote")
        if remote is None:
            return NoRemote(tuple(targets))
        files = [self.pointed(target) for target in targets]
        for file in files:
            self._checked(file, self._cache(settings))
        self._run("push", *targets)
        folder = self._folder(settings, remote)
        if folder is None:
            self._ask_remote(remote, targets)
        else:
            for file in files:
                self._checked(file, folder)
        return Pushed(remote, tuple(targets))

    def reached(self) -> str | None:
        """The default remote's name, after it was looked at; ``None`` when there is none.

        ``EOP646`` for a folder that is not there, ``EOP945`` with DVC's words for any other remote
        that does not answer.
        """
        settings = self._settings
        remote = settings.get("core.remote")
        if remote is None:
            return None
        folder = self._folder(settings, remote)
        if folder is None:
            self._run("list-url", f"remote://{remote}")
        elif not folder.is_dir():
            raise EopError(
                "EOP646",
                f"the folder of remote '{remote}' is not there: {folder}",
                where=Where(str(self.root)),
                hint=f"mkdir -p {folder}, or dvc remote modify {remote} url <folder or url>",
                exit_code=ExitCode.ENVIRONMENT,
            )
        return remote

    def verify(self, targets: Sequence[str] = (), *, remote: bool = False) -> StoreReport:
        """Read the cache (or the default remote) object by object; trust no name without reading.

        The objects behind the pointers ``targets`` must be there. A folder is read whole; of any
        other remote the objects of the targets are fetched to a folder of their own and read there.
        ``EOP646`` when the remote is asked for and there is none.
        """
        expected = [self.pointed(target).md5 for target in targets]
        if not remote:
            return check_store(self._cache(self._settings), expected)
        name = self._settings.get("core.remote")
        if name is None:
            raise EopError(
                "EOP646",
                "the project has no default remote, so none can be read",
                where=Where(str(self.root / ".dvc" / "config")),
                hint=NoRemote(()).command,
                exit_code=ExitCode.CONFIG,
            )
        folder = self._folder(self._settings, name)
        if folder is not None:
            return check_store(folder, expected)
        return self._read_remote(name, targets, expected)

    def _read_remote(
        self, remote: str, targets: Sequence[str], expected: Sequence[str]
    ) -> StoreReport:
        """Fetch into a project of its own, whose cache is empty: no byte of ours stands in.

        ``EOP945`` with DVC's words for a remote that does not answer.
        """
        if targets:
            self._run("status", "--cloud", "--remote", remote, *targets)
        with tempfile.TemporaryDirectory(prefix="dvc-") as folder:
            other = Dvc(Path(folder), timeout_s=self._timeout_s)
            other.init()
            for name in ("config", "config.local"):
                if (self.root / ".dvc" / name).is_file():
                    shutil.copyfile(self.root / ".dvc" / name, other.root / ".dvc" / name)
            settings = {
                "core.no_scm": "true",
                "cache.dir": str(other.root / "read"),
                f"remote.{remote}.verify": "false",
            }
            for key, value in settings.items():
                other._run("config", "--local", key, value)
            for target in targets:
                (other.root / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / target, other.root / target)
            # It fails when an object is not there, and brings the others all the same.
            with suppress(EopError):
                other._run("fetch", "--remote", remote, *targets)
            found = check_store(other.root / "read", expected)
        return replace(found, store=f"remote '{remote}'")

    def use_page(self, text: str) -> None:
        """Have `dvc plots` write its pages into the HTML ``text``, on this machine.

        ``{plot_divs}`` in it is where the pictures go. A page of the user's own stays theirs.
        """
        path = self.root / ".dvc" / _PAGE
        if self._settings.get("plots.html_template") not in (None, _PAGE):
            return
        if write_if_changed(path, text) or "plots.html_template" not in self._settings:
            self._run("config", "--local", "plots.html_template", _PAGE)

    def pointers(self) -> list[str]:
        """The pointers of the project: splits, snapshots, and what entries keep."""
        found = (path for top in _POINTED for path in (self.root / top).rglob("*.dvc"))
        return sorted(path.relative_to(self.root).as_posix() for path in found if path.is_file())

    def pointed(self, pointer: str) -> StoredFile:
        """What a pointer says; EOP642 for one that cannot be read."""
        path = self.root / pointer
        try:
            out = read_yaml(path)["outs"][0]
            relative = (path.parent / out["path"]).relative_to(self.root).as_posix()
            return StoredFile(relative, out["md5"], out["size"])
        except (OSError, yaml.YAMLError, KeyError, IndexError, TypeError) as error:
            raise EopError(
                "EOP642",
                f"not a readable DVC pointer: {error!r}",
                where=Where(pointer),
                hint=f"restore it from git, or store the file again: dvc add {pointer[:-4]}",
                exit_code=ExitCode.DATA,
            ) from error

    def _checked(self, file: StoredFile, store: Path) -> StoredFile:
        stored = object_path(store, file.md5)
        if not stored.is_file():
            raise EopError(
                "EOP645",
                f"the object {file.md5} of this file is missing from {store}",
                where=Where(file.path),
                hint=f"store the file again: dvc add {file.path}",
                exit_code=ExitCode.DATA,
            )
        if md5_of(stored) != file.md5.removesuffix(".dir"):
            raise EopError(
                "EOP644",
                f"the stored bytes are not those recorded ({stored})",
                where=Where(file.path),
                hint="store a file only after its writer has ended; remove the bad object, "
                f"then store the file again: dvc add {file.path}",
                exit_code=ExitCode.DATA,
            )
        return file

    def _ask_remote(self, remote: str, targets: Sequence[str]) -> None:
        absent = json.loads(self._run("status", "--cloud", "--json", *targets))
        if absent:
            raise EopError(
                "EOP645",
                f"not at the remote '{remote}' after the push: {', '.join(sorted(absent))}",
                where=Where(str(self.root)),
                hint=f"push again: dvc push {' '.join(targets)}",
                exit_code=ExitCode.DATA,
            )

    def _cache(self, settings: dict[str, str]) -> Path:
        return Path(settings.get("cache.dir", self.root / ".dvc" / "cache"))

    @cached_property
    def _settings(self) -> dict[str, str]:
        lines = self._run("config", "--list").splitlines()
        pairs = (line.partition("=") for line in lines)
        return {key.strip(): value.strip() for key, _, value in pairs}

    def _folder(self, settings: dict[str, str], remote: str) -> Path | None:
        url = settings.get(f"remote.{remote}.url", "")
        if not url or "://" in url:
            return None
        return Path(url)

    def _run(self, *arguments: str) -> str:
        if not self.available:
            raise EopError(
                "EOP943",
                "DVC is not installed in this environment",
                hint="run: make setup",
                exit_code=ExitCode.ENVIRONMENT,
            )
        if not self.initialised:
            raise EopError(
                "EOP944",
                "this project is not a DVC project",
                where=Where(str(self.root)),
                hint="run: dvc init",
                exit_code=ExitCode.ENVIRONMENT,
            )
        with tempfile.TemporaryDirectory(prefix="dvc-") as folder:
            return self._call(Path(folder), arguments)

    def _call(self, streams: Path, arguments: tuple[str, ...]) -> str:
        out, err = streams / "stdout", streams / "stderr"
        done = run(
            [sys.executable, "-m", "dvc", "--wait-for-lock", *arguments],
            cwd=self.root,
            env={
                **os.environ,
                "DVC_NO_ANALYTICS": "1",
                "DVC_SITE_CACHE_DIR": str(self.root / ".dvc" / "tmp" / "site"),
            },
            stdout=out,
            stderr=err,
            timeout_s=self._timeout_s,
        )
        if done.rc == 0 and not done.timed_out:
            return out.read_text()
        ended = (
            f"no end after {self._timeout_s:g} s" if done.timed_out else f"exit status {done.rc}"
        )
        raise EopError(
            "EOP945",
            f"dvc {' '.join(arguments)}: {ended}\n{err.read_text().strip()}",
            where=Where(str(self.root)),
            exit_code=ExitCode.ENVIRONMENT,
        )


def _same(path: Path, name: str, sha256: str) -> None:
    if file_digest(path) != sha256:
        raise EopError(
            "EOP644",
            f"the bytes are not those recorded for it ({path})",
            where=Where(name),
            hint="bring the file back that the entry was made with; its SHA-256 is "
            f"{sha256[:16]}...",
            exit_code=ExitCode.DATA,
        )
