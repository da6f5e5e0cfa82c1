"""Columns of raw files, each value with its place, so that an error can name the line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from hstu.data.errors import HstuError
from hstu.data.files import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_WHOLE = r"^\s*[+-]?[0-9]+(\.0*)?\s*$"
_EXACT_FLOAT = 2.0**53
_UNIT = "\x1f"


@dataclass(frozen=True)
class TextLayout:
    """How a text file is cut: ``names`` of all its columns, ``None`` when its first line has them.

    A name in a first line loses what follows a colon (``user_id:token`` is ``user_id``).
    """

    separator: str
    encoding: str = "utf8"
    names: tuple[str, ...] | None = None
    quoted: bool = False


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as read, all of one length.

    ``first_line`` is the line of row 0 of a text file, ``None`` for parquet.
    """

    path: Path
    columns: dict[str, pa.ChunkedArray]
    rows: int
    first_line: int | None

    def place(self, row: int) -> str:
        """``path:line`` of a text file's row, ``path, row n`` (from 1) of a parquet file's."""
        if self.first_line is None:
            return f"{self.path}, row {row + 1}"
        return f"{self.path}:{self.first_line + row}"

    def integers(self, name: str) -> NDArray[np.int64]:
        """A column as int64 [rows]; the first value that is no whole number is an error."""
        values, good = _whole_numbers(self, name)
        if not good.all():
            row = int(np.argmin(good))
            raise self.bad_value(name, row)
        return values

    def integers_or_zero(self, name: str) -> NDArray[np.int64]:
        """As ``integers``; a missing value (null or empty text) is 0, which means unknown."""
        column = self.columns[name]
        if pa.types.is_string(column.type):
            empty = pc.equal(pc.utf8_trim_whitespace(column), "")
        elif pa.types.is_floating(column.type):
            empty = pc.is_nan(column)
        else:
            empty = pc.is_null(column)
        empty = pc.fill_null(empty, True)
        filled = pc.if_else(empty, pa.scalar(0).cast(column.type), column)
        return replace(self, columns={name: filled}).integers(name)

    def texts(self, name: str) -> list[str]:
        """A column as stripped text; a missing value is ""."""
        column = self.columns[name]
        if not pa.types.is_string(column.type):
            raise HstuError(
                f"column {name} must hold text, not {column.type}", where=str(self.path)
            )
        texts: list[str] = pc.fill_null(pc.utf8_trim_whitespace(column), "").to_pylist()
        return texts

    def bad_value(self, name: str, row: int) -> HstuError:
        """The error for a value of an integer column that is no whole number."""
        value = self.columns[name][row].as_py()
        if value is None or value == "" or value != value:
            message = f"{name} is missing"
        else:
            message = f"{name} is not a whole number: {value!r}"
        hint = "ids must be integers; map other ids to integers first"
        if name == "timestamp":
            hint = "timestamps must be whole Unix seconds"
        return HstuError(message, where=self.place(row), hint=hint)


def read_text(
    path: Path, layout: TextLayout, needed: Sequence[str], optional: Sequence[str] = ()
) -> RawTable:
    """Read columns of a text file as text.

    A missing needed column, a line with too few or too many fields, wrong encoding and a file
    without rows are errors. Empty lines at the end are passed over.
    """
    content = _content(path)
    separator = layout.separator
    if len(separator) > 1:
        content = content.replace(separator.encode(), _UNIT.encode())
        separator = _UNIT
    bad: list[csv.InvalidRow] = []

    def on_bad_row(row: csv.InvalidRow) -> str:
        bad.append(row)
        return "error"

    parse = csv.ParseOptions(
        delimiter=separator,
        quote_char='"' if layout.quoted else False,
        ignore_empty_lines=False,
        invalid_row_handler=on_bad_row,
    )
    read = csv.ReadOptions(
        use_threads=False, encoding=layout.encoding, column_names=layout.names or None
    )
    try:
        names = list(layout.names or _header(content, read, parse))
        _require(path, [_plain(name) for name in names], needed)
        wanted = [name for name in names if _plain(name) in {*needed, *optional}]
        convert = csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(names, pa.string())
        )
        table = csv.read_csv(BytesIO(content), read, parse, convert)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _text_error(path, bad, error) from error
    if not table.num_rows:
        raise HstuError("the file holds no rows", where=str(path))
    columns = {_plain(name): table.column(name) for name in wanted}
    first = 1 if layout.names else 2
    return RawTable(path, columns, table.num_rows, first)


def read_parquet(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> RawTable:
    """Read columns of a parquet file; a missing needed column and a file without rows are errors.

    Dictionary and large strings become plain strings.
    """
    table = read_table(path)
    _require(path, table.column_names, needed)
    if not table.num_rows:
        raise HstuError("the file holds no rows", where=str(path))
    wanted = [name for name in (*needed, *optional) if name in table.column_names]
    columns = {name: _plain_text(table.column(name)) for name in wanted}
    return RawTable(path, columns, table.num_rows, None)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise HstuError("file is missing", where=str(path)) from None
    if not content.strip():
        raise HstuError("the file is empty", where=str(path))
    return content.rstrip(b"\r\n") + b"\n"


def _header(content: bytes, read: csv.ReadOptions, parse: csv.ParseOptions) -> list[str]:
    end = content.find(b"\n")
    line = content if end < 0 else content[: end + 1]
    names: list[str] = csv.read_csv(BytesIO(line), read, parse).column_names
    return names


def _plain(name: str) -> str:
    return name.partition(":")[0].strip()


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    return column.cast(pa.string()) if pa.types.is_large_string(kind) else column


def _require(path: Path, present: Sequence[str], needed: Sequence[str]) -> None:
    lacking = [name for name in needed if name not in present]
    if not lacking:
        return
    hint = f"the file has: {', '.join(present)}"
    if lacking == ["timestamp"] and "minute" in present:
        hint += (
            "; relative minutes are not Unix seconds: when the start is known, "
            "write timestamp = start + 60 * minute"
        )
    raise HstuError(
        f"column{'s' if len(lacking) > 1 else ''} {', '.join(lacking)} missing",
        where=str(path),
        hint=hint,
    )


def _text_error(path: Path, bad: list[csv.InvalidRow], error: Exception) -> HstuError:
    if bad:
        row = bad[0]
        return HstuError(
            f"{row.actual_columns} fields where {row.expected_columns} were expected",
            where=f"{path}:{row.number}",
        )
    return HstuError(f"not a readable text table: {error}", where=str(path))


def _whole_numbers(table: RawTable, name: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values [rows] (0 where bad) and which are good [rows]."""
    column = table.columns[name]
    kind = column.type
    if pa.types.is_integer(kind):
        good = column.is_valid().to_numpy()
        try:
            return pc.fill_null(column, 0).cast(pa.int64()).to_numpy(), good
        except pa.ArrowInvalid:
            # Only unsigned 64-bit values can be too large for int64.
            largest = pa.scalar(np.iinfo(np.int64).max, pa.uint64())
            fits = pc.less_equal(column.cast(pa.uint64()), largest)
            return np.zeros(table.rows, np.int64), pc.fill_null(fits, False).to_numpy()
    if pa.types.is_floating(kind):
        return _whole_floats(column.cast(pa.float64()))
    if pa.types.is_string(kind):
        return _whole_texts(pc.fill_null(column, ""))
    hint = "write them as Unix seconds" if pa.types.is_temporal(kind) else None
    raise HstuError(
        f"column {name} must hold integers, not {kind}", where=str(table.path), hint=hint
    )


def _whole_floats(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    values = pc.fill_null(column, np.nan).to_numpy()
    good = (np.abs(values) < _EXACT_FLOAT) & (values == np.floor(values))
    return np.where(good, values, 0.0).astype(np.int64), good


def _whole_texts(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    try:
        return column.cast(pa.int64()).to_numpy(), np.ones(len(column), np.bool_)
    except pa.ArrowInvalid:
        looks = pc.match_substring_regex(column, _WHOLE)
        trimmed = pc.utf8_trim_whitespace(pc.if_else(looks, column, "nan"))
        values, good = _whole_floats(pc.utf8_ltrim(trimmed, "+").cast(pa.float64()))
        return values, good
