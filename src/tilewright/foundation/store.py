"""Stores: SQLite files of declared tables, whose rows are sealed.

A caller declares its tables, what a row's values stand for, and the layout of the file.  A store creates,
recognises and upgrades files of that layout, writes rows durably, and reads them back.  Every row has a
*seal*, the hash of its content, so that a changed byte is noticed whether or not SQLite notices it.
"""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tilewright.foundation.database import PATIENCE, DamagedError, Database
from tilewright.foundation.errors import InputError

Item = TypeVar("Item")
Values = Mapping[str, Any]
"""A row's values by column."""

MOST_BYTES: Final = 1 << 28
"""Bytes of a text, at most."""
_BATCH = 500
"""Hashes in one statement; SQLite takes 999 at least."""


def seal(values: Sequence[object]) -> str:
    """Content hash of a row, equal for what SQLite reads back of it (integral floats are integers)."""
    plain = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return hashlib.sha256(json.dumps(plain, default=repr).encode()).hexdigest()


class Column(NamedTuple):
    """A column: its name, its type and constraints in SQL, and its meaning, which stands in the file too."""

    name: str
    type: str
    meaning: str = ""


_SEAL = Column("seal", "TEXT NOT NULL DEFAULT ''", "SHA-256 of the row's other columns")


@dataclass(frozen=True)
class Table(Generic[Item]):
    """A kind of rows.

    Parameters
    ----------
    columns : without the seal; those that a later layout adds take nulls
    item : what the values of a row stand for; may raise ``InputError``, ``ValueError`` and the like
    keys : so many columns, from the first one on, are the primary key
    indexed : columns with an index of their own
    """

    name: str
    columns: tuple[Column, ...]
    item: Callable[[Values], Item]
    keys: int = 1
    indexed: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of the columns without the seal, in the sequence in which they are sealed."""
        return [column.name for column in self.columns]

    @property
    def statements(self) -> list[str]:
        """SQL that makes the table and its indices."""
        return [
            _create(self.name, [*self.columns, _SEAL], self.names[: self.keys]),
            *(f"CREATE INDEX {self.name}_{column} ON {self.name} ({column})" for column in self.indexed),
        ]


@dataclass(frozen=True)
class Texts:
    """A table of texts, each identified by its hash, so that none is ever replaced.

    Parameters
    ----------
    column : that holds the text
    digits : of the hash, a SHA-256 in hexadecimal digits, cut to as many
    is_compressed : by zlib
    """

    name: str
    column: str
    digits: int = 64
    is_compressed: bool = False

    @property
    def statements(self) -> list[str]:
        """SQL that makes the table."""
        content = (
            ("BLOB NOT NULL", "compressed by zlib") if self.is_compressed else ("TEXT NOT NULL", "as it is")
        )
        columns = [Column("hash", "TEXT NOT NULL", "SHA-256 of the text"), Column(self.column, *content)]
        has_row_ids = not self.is_compressed  # as files of earlier versions have it
        return [_create(self.name, columns, ["hash"], has_row_ids=has_row_ids)]

    def hash_of(self, text: str) -> str:
        """The hash that identifies a text."""
        return hashlib.sha256(text.encode()).hexdigest()[: self.digits]

    @property
    def insertion(self) -> str:
        """SQL that adds a `row`, unless it is there."""
        return f"INSERT OR IGNORE INTO {self.name} (hash, {self.column}) VALUES (?, ?)"

    def row(self, text: str) -> tuple[str, str | bytes]:
        """Hash and content of a text."""
        return self.hash_of(text), zlib.compress(text.encode(), 9) if self.is_compressed else text

    def read(self, base: Database, hashes: Iterable[str], *, pass_over: bool = False) -> dict[str, str]:
        """The texts of a file with some hashes, by hash.

        Parameters
        ----------
        pass_over : skip damaged texts; otherwise they raise `DamagedError`
        """
        texts: dict[str, str] = {}
        listed = list(hashes)
        for start in range(0, len(listed), _BATCH):
            batch = listed[start : start + _BATCH]
            marks = ", ".join("?" * len(batch))
            statement = f"SELECT hash, {self.column} FROM {self.name} WHERE hash IN ({marks})"
            for hashed, content in base.rows(statement, batch):
                try:
                    with base.reading(f"{self.name} {hashed[:12]}"):
                        texts[hashed] = self._text(hashed, content)
                except DamagedError:
                    if not pass_over:
                        raise
        return texts

    def _text(self, hashed: str, content: str | bytes) -> str:
        if isinstance(content, str):
            text = content
        else:
            reader = zlib.decompressobj()
            try:
                text = reader.decompress(content, MOST_BYTES).decode()
            except zlib.error as error:
                raise ValueError(str(error)) from None
            if reader.unconsumed_tail:
                raise ValueError(f"more than {MOST_BYTES} bytes")
        if self.hash_of(text) != hashed:
            raise ValueError("not the text of its hash")
        return text


@dataclass(frozen=True)
class Layout:
    """What a file of one kind holds.

    Parameters
    ----------
    application : SQLite's ``application_id``, which identifies the kind
    version : of the tables, SQLite's ``user_version``
    name : of the kind, for errors
    tables : of the current version
    readable : older versions, which had no other tables and columns than this one; their files are upgraded
    is_cache : whether all of it can be computed again: damaged rows are skipped, a file that cannot be
        written can still be read, and opening it reads none of its pages
    """

    application: int
    version: int
    tables: tuple[Table[Any] | Texts, ...]
    name: str
    readable: tuple[int, ...] = ()
    is_cache: bool = False


class SealedStore(Database):
    """An open file of a layout.

    Parameters
    ----------
    patience, stop : for locks, as `Database` takes them
    create : whether an empty file gets the tables

    Attributes
    ----------
    refused : rows of a cache that were skipped, because they are not what was written

    Raises
    ------
    LockedError, DamagedError, UnusableError : here and from every method
    InputError : for a file of another program or version
    """

    def __init__(
        self,
        path: Path,
        layout: Layout,
        patience: Callable[[], float] = lambda: PATIENCE,
        stop: threading.Event | None = None,
        *,
        create: bool = True,
    ) -> None:
        super().__init__(path, patience, stop)
        self._layout = layout
        self.refused = 0
        try:
            self._adopt(create)
        except BaseException:
            self.close()
            raise

    def _adopt(self, create: bool) -> None:
        """Create the tables of an empty file if wanted; recognise any other file, and upgrade it."""
        layout = self._layout
        if create and self.is_empty():
            if not layout.is_cache:
                self.rows("PRAGMA journal_mode = WAL")
            with self.transaction():
                if self.is_empty():  # else another program was quicker
                    for table in layout.tables:
                        self._make(table)
                    self.rows(f"PRAGMA application_id = {layout.application}")
                    self.rows(f"PRAGMA user_version = {layout.version}")
        if self.number("application_id") != layout.application:
            message = f"an SQLite file of another program, expected {layout.name}"
            raise InputError(str(self.path), None, message)
        version = self.number("user_version")
        if version not in (*layout.readable, layout.version):
            message = f"{layout.name} of version {version}, expected {layout.version}"
            raise InputError(str(self.path), "user_version", message)
        if not layout.is_cache:
            self.examine()
        if version != layout.version:
            self._bring_up()
        self.rows("PRAGMA synchronous = FULL")

    def _make(self, table: Table[Any] | Texts) -> None:
        for statement in table.statements:
            self.rows(statement)

    def _bring_up(self) -> None:
        """Add the tables and columns that an older file lacks; rows without seals are sealed as they are."""
        with self.transaction():
            if self.number("user_version") == self._layout.version:
                return  # another program was quicker
            for table in self._layout.tables:
                present = {name for _, name, *_ in self.rows(f"PRAGMA table_info({table.name})")}
                if not present:
                    self._make(table)
                elif isinstance(table, Table):
                    self._add_columns(table, present)
            self.rows(f"PRAGMA user_version = {self._layout.version}")

    def _add_columns(self, table: Table[Any], present: set[str]) -> None:
        former = [name for name in table.names if name in present]
        missing = [column for column in (*table.columns, _SEAL) if column.name not in present]
        is_sealed = _SEAL.name in present
        rows = self.rows(f"SELECT {', '.join([*former, 'seal'] if is_sealed else former)} FROM {table.name}")
        if is_sealed:
            rows = [self._unsealed(table, row) for row in rows]
        for column in missing:
            self.rows(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.type}")
        chosen = " AND ".join(f"{key} = ?" for key in table.names[: table.keys])
        sealed = [
            (seal([values.get(name) for name in table.names]), *row[: table.keys])
            for row in rows
            for values in [dict(zip(former, row, strict=True))]
        ]
        self.run_many(f"UPDATE {table.name} SET seal = ? WHERE {chosen}", sealed)

    def add(self, table: Table[Any], values: Values) -> None:
        """Write a row durably, in place of one of its key, or hold it in memory (`Database.keep`)."""
        self.keep(_insertion(table, "REPLACE"), _sealed(table, values))

    def add_all(self, table: Table[Any], rows: Iterable[Values], *, replace: bool = True) -> None:
        """Write rows, all or none.

        Parameters
        ----------
        replace : existing rows of their keys; otherwise those remain
        """
        insertion = _insertion(table, "REPLACE" if replace else "IGNORE")
        self.run_many(insertion, [_sealed(table, values) for values in rows])

    def items(self, table: Table[Item], order: Sequence[str] = (), /, **chosen: object) -> Iterator[Item]:
        """The items that rows of a table stand for.

        Parameters
        ----------
        order : columns by which they are sorted
        chosen : values of columns that rows must have

        Raises
        ------
        DamagedError : for a row that is not what was written, unless the file is a cache
        """
        statement = f"SELECT {', '.join(table.names)}, seal FROM {table.name}{_where(chosen)}"
        if order:
            statement += f" ORDER BY {', '.join(order)}"
        for row in self.rows(statement, [*chosen.values()]):
            try:
                values = dict(zip(table.names, self._unsealed(table, row), strict=True))
                with self.reading(_label(table, row)):
                    item = table.item(values)
            except DamagedError:
                if not self._layout.is_cache:
                    raise
                self.refused += 1
            else:
                yield item

    def find(self, table: Table[Item], **chosen: object) -> Item | None:
        """The item of the only row with some values, if there is one; raises as `items` does."""
        return next(self.items(table, (), **chosen), None)

    def drop(self, table: Table[Any], **chosen: object) -> None:
        """Remove the rows with some values."""
        self.rows(f"DELETE FROM {table.name}{_where(chosen)}", [*chosen.values()])

    def count(self, table: Table[Any]) -> int:
        """How many rows a table has."""
        return int(self.rows(f"SELECT count(*) FROM {table.name}")[0][0])

    def add_text(self, table: Texts, text: str) -> str:
        """Write a text durably, as `add` does a row; returns its hash."""
        row = table.row(text)
        self.keep(table.insertion, row)
        return row[0]

    def add_texts(self, table: Texts, texts: Iterable[str]) -> None:
        """Write texts, all or none."""
        self.run_many(table.insertion, map(table.row, texts))

    def texts(self, table: Texts, hashes: Iterable[str]) -> dict[str, str]:
        """The texts that the file has, by hash; of a cache without damaged ones."""
        return table.read(self, hashes, pass_over=self._layout.is_cache)

    def _unsealed(self, table: Table[Any], row: Sequence[Any]) -> tuple[Any, ...]:
        """A row without its seal, which is the last column."""
        *values, sealed = row
        if sealed != seal(values):
            raise self.damaged(f"{_label(table, row)} does not match its hash")
        return tuple(values)


def _create(name: str, columns: Sequence[Column], keys: Sequence[str], *, has_row_ids: bool = False) -> str:
    lines = [
        *((f"{column.name} {column.type},", column.meaning) for column in columns),
        (f"PRIMARY KEY ({', '.join(keys)})", ""),
    ]
    width = max(len(line) for line, _ in lines)
    told = [f"    {line:{width}}  -- {meaning}" if meaning else f"    {line}" for line, meaning in lines]
    return "\n".join([f"CREATE TABLE {name} (", *told, ")" if has_row_ids else ") WITHOUT ROWID"])


def _insertion(table: Table[Any], conflict: str) -> str:
    names = [*table.names, "seal"]
    marks = ", ".join("?" * len(names))
    return f"INSERT OR {conflict} INTO {table.name} ({', '.join(names)}) VALUES ({marks})"


def _sealed(table: Table[Any], values: Values) -> tuple[Any, ...]:
    row = tuple(values[name] for name in table.names)
    return (*row, seal(row))


def _where(chosen: Values) -> str:
    return " WHERE " + " AND ".join(f"{name} = ?" for name in chosen) if chosen else ""


def _label(table: Table[Any], row: Sequence[Any]) -> str:
    return f"{table.name} {'/'.join(str(key)[:12] for key in row[: table.keys])}"
