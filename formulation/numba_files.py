"""Numba's cache of functions, in folders and files that are trusted.

Numba takes the first folder that it can write to and unpickles what lies there, whoever wrote it.  Here its
classes find folders, read and write by the rule of :mod:`tilewright.formulation.trust`.  The folder that
``NUMBA_CACHE_DIR`` names comes first.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.formulation import trust
from tilewright.formulation.caches import code_folders, is_writable


class _Locator:
    """Where a function is kept: the first trusted folder that takes files; the names are numba's."""

    def __init__(self, function: Any, file: str) -> None:
        import numba

        settings: Any = numba.config
        self._py_file, self._line = file, function.__code__.co_firstlineno
        self.folder, self.module = _place(Path(file).absolute(), settings.CACHE_DIR)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator | None:
        return cls(function, file) if Path(file).exists() else None

    def ensure_cache_path(self) -> None:
        """A folder is made by whoever writes to it."""

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        """Numba asks; `cache_class` has the digest of more than this file."""
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


@cache
def _place(source: Path, named: str) -> tuple[Path, Path | None]:
    """The folder for functions of a source file, as `trust` takes it.

    Parameters
    ----------
    named : the folder that the user names, if any
    """
    near = f"{source.parent.name}_{hashlib.sha256(str(source.parent).encode()).hexdigest()[:24]}"
    places: list[tuple[Path, Path | None]] = [(Path(named).absolute() / near, None)] if named else []
    for folder, module in code_folders(source):
        places.append((folder if module else folder / near, module))
    return next((place for place in places if is_writable(*place)), places[0])


@cache
def cache_class() -> Any:
    """The class of caches, of a function and of the digest of all that its code is made of.

    Raises
    ------
    RuntimeError : by the class, for a function whose text is in no file
    """
    caching: Any = import_module("numba.core.caching")

    class Files(caching.IndexDataCacheFile):  # type: ignore[misc]
        """Index and data of one function."""

        module: Path | None = None

        def _load_index(self) -> Any:
            content = trust.read(Path(self._index_path), self.module)
            if content is None:
                return {}
            stream = io.BytesIO(content)
            if pickle.load(stream) != self._version:
                return {}
            stamp, names = pickle.load(stream)
            return names if stamp == self._source_stamp else {}

        def _load_data(self, name: str) -> Any:
            content = trust.read(Path(self._data_path(name)), self.module)
            if content is None:
                raise FileNotFoundError(name)
            return pickle.loads(content)

        @contextmanager
        def _open_for_write(self, path: str) -> Iterator[io.BytesIO]:
            stream = io.BytesIO()
            yield stream
            if not trust.write(Path(path), stream.getvalue(), self.module):
                raise OSError(f"{path}: cannot be written")

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (_Locator,)

    class Cache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

        def __init__(self, function: Any, digest: str) -> None:
            super().__init__(function)
            self._cache_file = Files(self._cache_path, self._impl.filename_base, digest)
            self._cache_file.module = getattr(self._impl.locator, "module", None)

    return Cache
