"""Evidence that documents refer to: texts in a store, each known by the SHA-256 of what it says.

A document that would be too long with all its plans carries their hashes.  A text is never replaced: what an
older document refers to stays where it was.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from tilewright.foundation.database import Database
from tilewright.foundation.errors import InputError

TABLE: Final = """
CREATE TABLE evidence (
    hash TEXT PRIMARY KEY,           -- SHA-256 of the text
    text BLOB NOT NULL               -- compressed by zlib
) WITHOUT ROWID"""

MOST_BYTES: Final = 1 << 28
"""Bytes of a text, at most."""


def content_hash(text: str) -> str:
    """What a text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


def keep(base: Database, text: str) -> str:
    """Store a text for good; returns its hash."""
    hashed = content_hash(text)
    base.keep("INSERT OR IGNORE INTO evidence VALUES (?, ?)", (hashed, zlib.compress(text.encode(), 9)))
    return hashed


def kept(base: Database, hashed: str) -> str | None:
    """The text of a hash, if it is there; raises ``DamagedError`` where it is not what was written."""
    rows = base.rows("SELECT text FROM evidence WHERE hash = ?", (hashed,))
    if not rows:
        return None
    with base.reading(f"evidence {hashed[:12]}"):
        reader = zlib.decompressobj()
        try:
            text = reader.decompress(rows[0][0], MOST_BYTES).decode()
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if reader.unconsumed_tail or content_hash(text) != hashed:
            raise ValueError("not the text of its hash")
    return text


class EvidenceFile:
    """A store, opened to read its evidence.

    Raises
    ------
    InputError : for a file that is no store, or is damaged, here and from every method
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._base = Database(path)
        try:
            tables = self._base.rows("SELECT name FROM sqlite_master WHERE name = 'evidence'")
        except BaseException:
            self._base.close()
            raise
        self._has_any = bool(tables)

    def text(self, hashed: str) -> str | None:
        """The text of a hash, if it is there."""
        return kept(self._base, hashed) if self._has_any else None

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def __enter__(self) -> EvidenceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def places_of(store: str, document: str) -> Sequence[Path]:
    """Where the store that a document names may lie: beside it first, then in the current folder."""
    named, folder = Path(store), Path(document).parent
    return [*dict.fromkeys([folder / named, named, folder / named.name])]


def open_evidence(store: Path | None, places: Sequence[Path]) -> EvidenceFile | None:
    """The store that is asked for, or the first that is there.

    Raises
    ------
    InputError : for a store that was asked for and is not there, or is none
    """
    if store is not None:
        if not store.is_file():
            reported = "no such file, expected a store that `tilewright compare` wrote"
            raise InputError(str(store), None, reported)
        return EvidenceFile(store)
    there = next((place for place in places if place.is_file()), None)
    return None if there is None else EvidenceFile(there)
