"""SQLite files that several programs share; locks, damage and full disks are errors of one line.

A lock is waited for no longer than the caller's patience; the event that stops the call ends the wait.  Where
a disk fills up while rows are computed, those that do not fit stay in memory.  `tilewright.foundation.store`
has tables of sealed rows in such files.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tilewright.foundation.disk import check_writable, is_stream, suffix_error
from tilewright.foundation.errors import InputError, OutputError, one_line

PATIENCE = 30.0
"""Seconds to wait for a lock where the caller has no limit."""
_PAUSE = 0.02
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNUSABLE = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}

_CLOSED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}

Answer = TypeVar("Answer")
Row = tuple[Any, ...]


SUFFIXES = (".sqlite", ".sqlite3", ".db")
"""Of new files that a user names."""


def check_database(path: Path) -> None:
    """Raise ``InputError`` for a file that could not be written; a new one is named as a database."""
    check_writable(path)
    if is_stream(path):
        raise InputError(str(path), None, "a device or pipe, expected a regular file for the store")
    if not os.path.exists(path) and path.suffix.lower() not in SUFFIXES:
        raise suffix_error(path, SUFFIXES)


class LockedError(InputError):
    """Another program holds the file, and the patience is over."""


class UnusableError(InputError):
    """The file cannot be opened, read or written: its disk is full or fails, or it is not allowed."""


class DamagedError(InputError):
    """The file is no SQLite file, or not what was written."""


def set_aside(path: Path) -> Path:
    """Rename a damaged file and SQLite's companion files, so that a new one can take its place.

    Returns
    -------
    The file's new name; an older file of that name is gone

    Raises
    ------
    OSError : where it cannot be renamed
    """
    aside = path.with_name(f"{path.name}.damaged")
    for companion in ("-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.replace(f"{path}{companion}", f"{aside}{companion}")
    os.replace(path, aside)
    return aside


class Database:
    """An open SQLite file, in autocommit mode outside of `transaction`.

    Parameters
    ----------
    patience : seconds that a lock may be waited for, asked before every wait
    stop : ends a wait as if patience were over

    Attributes
    ----------
    failure : why rows are pending in memory; ``None`` where all are in the file

    Raises
    ------
    LockedError, DamagedError, UnusableError : here and from every method
    """

    failure: OutputError | None = None

    def __init__(
        self,
        path: Path,
        patience: Callable[[], float] = lambda: PATIENCE,
        stop: threading.Event | None = None,
    ) -> None:
        self.path = path
        self._patience, self._stop = patience, stop or threading.Event()
        with self._reported():
            self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self._connection = self._file
        self._waiting: list[tuple[str, Sequence[object]]] = []

    def keep(self, statement: str, row: Sequence[object]) -> None:
        """Write a row durably, or hold it in memory if the file cannot be written.

        Pending rows are written with the next row that the file accepts.  Until then reads find them in a
        copy of the file's content, and ``failure`` says why they are pending.  Raises as every method does
        where the file cannot even be read.
        """
        self._waiting.append((statement, row))
        try:
            self._patiently(self._write_waiting, 0.0 if self.failure else self._patience())
        except (UnusableError, LockedError) as error:
            self.failure = OutputError(self.path, error.__context__ or error)  # in SQLite's words
            if self._connection is self._file:
                self._connection = self._copied()
            self._connection.execute(statement, row)
        else:
            self._waiting.clear()
            self._forget_copy()
            self.failure = None

    def _write_waiting(self) -> None:
        """Write all pending rows into the file, in one transaction."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            for statement, row in self._waiting:
                self._file.execute(statement, row)
            self._file.execute("COMMIT")
        finally:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")

    def _copied(self) -> sqlite3.Connection:
        """A copy of the file's content in memory."""
        with self._reported():
            copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._file.backup(copy)
        return copy

    def _forget_copy(self) -> None:
        if self._connection is not self._file:
            self._connection.close()
            self._connection = self._file

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """All rows of one statement."""
        return self._patiently(lambda: self._connection.execute(statement, values).fetchall())

    def run_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row."""
        listed = list(rows)
        self._patiently(lambda: self._connection.executemany(statement, listed))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is committed, or nothing; no other program writes meanwhile."""
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                with self._reported():
                    self._connection.execute("ROLLBACK")
            raise

    def number(self, pragma: str) -> int:
        """A pragma's value."""
        return int(self.rows(f"PRAGMA {pragma}")[0][0])

    def is_empty(self) -> bool:
        """Whether the file has no table yet."""
        return not self.rows("SELECT count(*) FROM sqlite_master")[0][0]

    def examine(self) -> None:
        """Raise ``DamagedError`` where pages or indices of the file contradict each other."""
        faults = self.rows("PRAGMA integrity_check(1)")
        if faults != [("ok",)]:
            raise self.damaged(" ".join(str(faults[0][0]).split()) if faults else "no answer")

    def damaged(self, what: str) -> DamagedError:
        """The error that says what is damaged."""
        return DamagedError(str(self.path), None, f"damaged: {what}")

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Report content that cannot be interpreted as damage of ``what``."""
        try:
            yield
        except InputError as error:
            raise (
                error
                if isinstance(error, LockedError | DamagedError)
                else self.damaged(f"{what}: {one_line(error)}")
            ) from None
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            raise self.damaged(f"{what}: {one_line(error)}") from None

    def copy_to(self, path: Path) -> None:
        """A consistent copy of the file, even while others write."""
        other = Database(path, self._patience, self._stop)
        try:
            with self._reported():
                self._connection.backup(other._connection)
        finally:
            other.close()

    def close(self) -> None:
        """Close the file; what was stored stays."""
        self._forget_copy()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _patiently(self, work: Callable[[], Answer], patience: float | None = None) -> Answer:
        deadline = time.monotonic() + (self._patience() if patience is None else patience)
        while True:
            try:
                with self._reported():
                    return work()
            except LockedError:
                if time.monotonic() >= deadline or self._stop.wait(_PAUSE):
                    raise

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _LOCKED:
                raise LockedError(
                    str(self.path), None, "locked by another program, expected it to end or to wait for"
                ) from None
            if code in _UNUSABLE and not (code in _CLOSED and _has_odd_header(self.path)):
                raise UnusableError(str(self.path), None, f"cannot be used: {one_line(error)}") from None
            if code == sqlite3.SQLITE_NOTADB:
                raise DamagedError(str(self.path), None, "not an SQLite file") from None
            raise self.damaged(one_line(error)) from None


def _has_odd_header(path: Path) -> bool:
    """Whether the header asks for another SQLite, which SQLite reports as a file that is not writable."""
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER)
    except OSError:
        return False
    return len(header) == _HEADER and not set(header[18:20]) <= {1, 2}


_HEADER = 100
