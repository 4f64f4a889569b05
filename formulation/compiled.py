"""Functions that numba compiles once per installation.

Numba keeps machine code and takes it for as long as the file of the function is unchanged, and never looks at
the other files of which the code was made.  Here every kept piece carries a digest of all of them: the
function's own module and the modules that it imports, followed through those that are compiled themselves.
Where nothing can be kept, functions are compiled by every process that needs them, and nothing fails.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, overload

from tilewright.formulation.numba_files import cache_class

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "@compiled"
_IMPORTS = re.compile(r"^from (tilewright[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


@overload
def compiled(function: Function) -> Function: ...


@overload
def compiled(*, inline: bool) -> Callable[[Function], Function]: ...


def compiled(function: Function | None = None, *, inline: bool = False) -> Any:
    """A function that numba compiles at its first call, kept where possible; it runs without a lock.

    Parameters
    ----------
    inline : whether its statements are written into those of its callers
    """
    if function is None:
        return partial(compiled, inline=inline)
    import numba  # late: who asks for anything else of a module does without

    made: Any = numba.njit(nogil=True, inline="always" if inline else "never")(function)
    with suppress(RuntimeError, OSError):  # of a text that is in no file
        made._cache = _Kept(function)
    return made


def is_kept(one: object) -> bool:
    """Whether something is a compiled function of whose present text machine code is kept."""
    kept = getattr(one, "_cache", None)
    return isinstance(kept, _Kept) and kept.is_filled


class _Kept:
    """A cache of machine code whose failures cost the time of compiling, and nothing else.

    A disk may be full, a file cut short; an earlier version may have kept types of modules that are gone.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._inner = cache_class()(function, digest_of(function.__module__))

    @property
    def is_filled(self) -> bool:
        try:
            return bool(self._inner._cache_file._load_index())
        except Exception:
            return False

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return self._inner.load_overload(*arguments)
        except Exception:
            return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(Exception):
            try:
                self._inner.save_overload(*arguments)
            except Exception:  # what is kept cannot be read: begin anew
                self._inner.flush()
                self._inner.save_overload(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@cache
def digest_of(module: str) -> str:
    """The digest of all texts of which a module's machine code is made."""
    digest = hashlib.sha256()
    for _, text in sorted(_texts(module).items()):
        digest.update(text.encode())
    return digest.hexdigest()


def _texts(module: str) -> dict[str, str]:
    """By name, the text of a module and of those that it imports; compiled ones are followed."""
    found: dict[str, str] = {}
    open_modules = [module]
    while open_modules:
        name = open_modules.pop()
        path = getattr(sys.modules.get(name), "__file__", None)
        if name in found or path is None:
            continue
        found[name] = text = Path(path).read_text(encoding="utf-8")
        if name == module or _MARK in text:
            open_modules.extend(_imported(text))
    return found


def _imported(text: str) -> Iterator[str]:
    """Modules of this package that a text may import: those named, and names in them that may be modules."""
    for match in _IMPORTS.finditer(text):
        yield match[1]
        for name in re.findall(r"\w+", match[2]):
            yield f"{match[1]}.{name}"
