"""Files and folders that are whole or absent, with bytes that depend on the content alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hstu.data.errors import HstuError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 1 << 20


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically (temporary file, sync, rename); parents are made."""
    with _replacing(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def write_json(path: Path, value: Any) -> None:
    """Write readable JSON (sorted keys, final newline) atomically; NaN is refused."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode())


def write_table(path: Path, table: pa.Table) -> None:
    """Write ``table`` as parquet atomically: same table, same bytes."""
    with _replacing(path) as temporary:
        pq.write_table(
            table.replace_schema_metadata(None),
            temporary,
            compression="zstd",
            row_group_size=_BLOCK,
        )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a missing, broken or other file is an ``HstuError``."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise HstuError("file is missing", where=str(path)) from None
    except OSError as error:
        raise HstuError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise HstuError(f"not valid JSON: {error}", where=str(path)) from error
    if not isinstance(value, dict):
        raise HstuError("not a JSON object", where=str(path))
    return value


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a parquet file; a missing or broken file or column is an ``HstuError``."""
    try:
        schema = pq.read_schema(path)
        lacking = [name for name in columns or [] if name not in schema.names]
        if lacking:
            raise HstuError(
                f"column {', '.join(lacking)} is missing",
                where=str(path),
                hint=f"the file has: {', '.join(schema.names)}",
            )
        return pq.read_table(path, columns=columns, partitioning=None)
    except FileNotFoundError:
        raise HstuError("file is missing", where=str(path)) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise HstuError(f"not a readable parquet file: {error}", where=str(path)) from error


def read_integers(path: Path, columns: list[str]) -> list[NDArray[np.int64]]:
    """Columns of a parquet file as int64 [rows]; any value that is no whole number is refused."""
    table = read_table(path, columns)
    found = []
    for name in columns:
        column = table.column(name)
        if column.null_count:
            raise HstuError(f"column {name} has missing values", where=str(path))
        try:
            found.append(column.cast(pa.int64()).to_numpy())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise HstuError(
                f"column {name} must hold integers: {error}", where=str(path)
            ) from error
    return found


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder that becomes ``target`` when the block ends well.

    A failure leaves ``target`` as it was. What ``target`` held before is replaced.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    try:
        temporary.chmod(0o777 & ~_umask())
        yield temporary
        if target.exists():
            old = temporary.with_suffix(".old")
            target.rename(old)
            temporary.rename(target)
            shutil.rmtree(old)
        else:
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """The process's umask: mkstemp and mkdtemp ignore it, a project's files follow it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
