"""A cache file for as long as it can be used: no long lock is waited for, a damaged file is set aside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from tilewright.formulation.limits import Limits
from tilewright.foundation.caches import VARIABLE, cache_folder
from tilewright.foundation.database import PATIENCE, DamagedError, LockedError, set_aside
from tilewright.foundation.errors import InputError, one_line
from tilewright.foundation.store import Layout, SealedStore

Store = TypeVar("Store", bound=SealedStore)
Answer = TypeVar("Answer")

_PATIENCE = 2.0  # seconds for a lock; whoever only writes a row is gone long before


class CacheStore(SealedStore):
    """A file of costs in the user's cache directory; ``TILEWRIGHT_CACHE`` names another directory.

    Parameters
    ----------
    folder : by default the user's cache directory
    name : of the file
    layout : of its tables
    patience, stop : for locks (`tilewright.foundation.database`)

    Raises
    ------
    LockedError, DamagedError : where another program holds the file, or it is damaged; here and from every
        method
    InputError : for a folder or file that cannot be used
    """

    def __init__(
        self,
        folder: Path | None,
        name: str,
        layout: Layout,
        patience: Callable[[], float] = lambda: PATIENCE,
        stop: threading.Event | None = None,
    ) -> None:
        path = Path(name)
        try:
            path = (folder or cache_folder()) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            super().__init__(path, layout, patience, stop)
        except (LockedError, DamagedError):
            raise
        except (OSError, InputError) as error:
            reason = error.message if isinstance(error, InputError) else one_line(error)
            raise InputError(
                str(path), None, f"cannot keep cost tables here ({reason}), remove it or set {VARIABLE}"
            ) from None


class Shelf(Generic[Store]):
    """The file of costs.  Use as a context manager.

    Parameters
    ----------
    opened : opens the file, given how many seconds a lock may last
    limits : of the search; locks take a small part of its time
    note : called with a line about rejected rows, or a file that cannot be used
    anew : use no file
    """

    def __init__(
        self,
        opened: Callable[[Callable[[], float]], Store],
        limits: Limits,
        note: Callable[[str], None],
        *,
        anew: bool = False,
    ) -> None:
        self._opened, self._note = opened, note
        self._patience = _PATIENCE if limits.remaining is None else min(_PATIENCE, limits.remaining / 8)
        self._store: Store | None = None
        self.rejected = 0
        if not anew:
            self._open()

    def __enter__(self) -> Shelf[Store]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def ask(self, work: Callable[[Store], Answer], default: Answer) -> Answer:
        """What the file answers; the default where it cannot be used, or is of no more use."""
        if self._store is None:
            return default
        try:
            return work(self._store)
        except DamagedError as error:
            self._replace(error)
        except InputError as error:
            self._leave(error)
        return default

    def tell(self) -> None:
        """Report how many rows were rejected, by the caller or by the file."""
        if self._store is not None and (count := self.rejected + self._store.refused):
            entries = "1 entry is" if count == 1 else f"{count} entries are"
            self._note(f"{self._store.path}: {entries} with a wrong hash, computed again")

    def _open(self, *, again: bool = False) -> None:
        try:
            self._store = self._opened(lambda: self._patience)
        except DamagedError as error:
            self._replace(error, again=again)
        except InputError as error:
            self._leave(error)

    def _leave(self, error: InputError) -> None:
        self._close()
        why = "locked by another program" if isinstance(error, LockedError) else error.message
        self._note(f"{error.where}: {why}, costs are computed and not cached")

    def _replace(self, error: DamagedError, *, again: bool = False) -> None:
        """Set a damaged file aside and go on with a new one."""
        self._close()
        try:
            if again:
                raise OSError("a new one is damaged too")
            aside = set_aside(Path(error.where))
        except OSError as failure:
            self._note(
                f"{error.where}: {error.message} ({one_line(failure)}), costs are computed and not cached"
            )
            return
        self._note(f"{error.where}: {error.message}, set aside as {aside.name}; costs are computed again")
        self._open(again=True)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None
