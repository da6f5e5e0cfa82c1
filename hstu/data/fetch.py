"""Fetch MovieLens-100K out of a published wheel that ships it, without installing that package."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from hstu.data.errors import ExitCode, HstuError
from hstu.data.files import new_folder, sha256
from hstu.data.readers import read_source
from hstu.data.sources import FETCHABLE, missing_message

_REQUIREMENT = "recbole==1.2.1"
_MEMBERS = "recbole/dataset_example/ml-100k/"
_EVENTS = 100_000
_ITEMS = 1_682
# SHA-256 of the files in that wheel.
FILES = {
    "ml-100k.inter": "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
    "ml-100k.item": "51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532",
}


def fetch(dataset: str, parent: Path) -> Path:
    """Put the raw files of ``dataset`` into ``parent/dataset`` and return that folder.

    A folder that holds the very files already is left alone. Raises ``HstuError``: a data set
    that cannot be fetched (the hint says where to get it), a failed download, other bytes than
    expected, a folder in the way.
    """
    folder = parent / dataset
    if dataset not in FETCHABLE:
        raise HstuError(
            f"{dataset} cannot be fetched",
            hint=missing_message(dataset, folder),
            exit_code=ExitCode.USAGE,
        )
    if folder.exists() and any(folder.iterdir()):
        verify(folder)
        return folder
    with tempfile.TemporaryDirectory(prefix="hstu-fetch-") as scratch:
        extract(_download(Path(scratch)), folder)
    return folder


def extract(wheel: Path, folder: Path) -> None:
    """Take the data set out of ``wheel``; ``folder`` appears whole and verified, or not at all."""
    with new_folder(folder) as new:
        try:
            with zipfile.ZipFile(wheel) as archive:
                for name in FILES:
                    (new / name).write_bytes(archive.read(_MEMBERS + name))
        except (zipfile.BadZipFile, KeyError) as error:
            raise HstuError(
                f"the wheel does not hold the data set: {error}",
                where=str(wheel),
                exit_code=ExitCode.ENVIRONMENT,
            ) from error
        verify(new)


def verify(folder: Path) -> None:
    """Raise ``HstuError`` unless ``folder`` holds the expected bytes and counts."""
    for name, expected in FILES.items():
        path = folder / name
        if not path.is_file():
            raise HstuError(
                f"the folder exists, but {name} is not in it",
                where=str(folder),
                hint="move the folder away and fetch again, or use it as it is",
            )
        if sha256(path) != expected:
            raise HstuError(
                "the file is not the published one: its digest differs",
                where=str(path),
                hint="remove the folder and fetch again",
            )
    raw = read_source(folder)
    if (len(raw.interactions), len(raw.items)) != (_EVENTS, _ITEMS):
        raise HstuError(
            f"{len(raw.interactions)} events and {len(raw.items)} items, "
            f"not {_EVENTS} and {_ITEMS}",
            where=str(folder),
        )


def _download(scratch: Path) -> Path:
    """The wheel, downloaded by pip with the settings that the user has for it."""
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    argv += ["--quiet", "--disable-pip-version-check", "--dest", str(scratch), _REQUIREMENT]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    wheels = sorted(scratch.glob("*.whl"))
    if done.returncode or not wheels:
        tail = "\n".join(done.stderr.strip().splitlines()[-3:]) or "pip left no wheel"
        raise HstuError(
            f"pip could not download {_REQUIREMENT}: {tail}",
            hint="check the network and pip's index settings, then try again",
            exit_code=ExitCode.ENVIRONMENT,
        )
    return wheels[0]
