"""Evidence that documents refer to: texts in a store, each known by the SHA-256 of what it says.

A document that would be too long with all its plans carries their hashes.  A text is never replaced: what an
older document refers to stays where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tilewright.foundation.database import Database
from tilewright.foundation.errors import InputError
from tilewright.foundation.store import Texts

EVIDENCE: Final = Texts("evidence", "text", is_compressed=True)


class EvidenceFile(Database):
    """A store of whatever layout, opened to read its evidence.

    Raises
    ------
    InputError : for a file that is no store, or is damaged, here and from every method
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            tables = self.rows("SELECT name FROM sqlite_master WHERE name = ?", [EVIDENCE.name])
        except BaseException:
            self.close()
            raise
        self._has_any = bool(tables)

    def text(self, hashed: str) -> str | None:
        """The text of a hash, if it is there."""
        return EVIDENCE.read(self, [hashed]).get(hashed) if self._has_any else None


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
