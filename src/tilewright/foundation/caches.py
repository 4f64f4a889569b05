"""Folders for what is cached between calls, and substitutes where nothing can be cached.

A package on a read-only file system, a user without a home, a full disk, a folder that others can write to:
none of them stops a search.  Caches then go to a folder of this user's own under the temporary directory, and
where not even that can be had, to one that ends with the process, or nowhere.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from tilewright.foundation import trust

VARIABLE = "TILEWRIGHT_CACHE"


def cache_folder() -> Path:
    """The folder that ``TILEWRIGHT_CACHE`` names, else the user's, else a temporary one.

    What is read from a cache is run or believed, so one that others can write to is none
    (:mod:`tilewright.foundation.trust`).
    """
    usual = usual_folder()
    if usual is not None and trust.doubt(usual) is None and (os.environ.get(VARIABLE) or is_writable(usual)):
        return usual  # one that was named and takes nothing is reported by whoever writes
    return temporary_folder() or _passing_folder()


def usual_folder() -> Path | None:
    """The folder that ``TILEWRIGHT_CACHE`` names, else the user's, whether or not it can be used.

    ``None`` for a user of whom no home is known, as a number without a name has none in a container.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("tilewright")).absolute()
    except RuntimeError:
        return None


def code_folders(module: Path) -> Iterator[tuple[Path, Path | None]]:
    """Where machine code made of a module is cached: next to it, else in the cache folder.

    Yields
    ------
    Folders as `trust` takes them: with the module where they lie beside it
    """
    yield module.parent / "__pycache__", module
    with suppress(OSError):
        yield cache_folder() / "compiled", None


def is_writable(folder: Path, module: Path | None = None) -> bool:
    """Whether files can be written to a folder; it is created if it does not exist."""
    try:
        trust.make(folder, module)
        if trust.doubt(folder, module):
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def temporary_folder() -> Path | None:
    """This user's own folder under the temporary directory; ``None`` where there can be none."""
    try:
        folder = Path(tempfile.gettempdir()).absolute() / f"tilewright-{os.geteuid()}"
    except OSError:
        return None
    return folder if is_writable(folder) else None


def leave_no_empty_folder() -> None:
    """Remove this user's folder under the temporary directory if it is empty."""
    owner = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    with suppress(OSError):  # not there, or not empty
        (Path(tempfile.gettempdir()) / f"tilewright{owner}").rmdir()


@cache
def _passing_folder() -> Path:
    """A folder that is gone with the process; raises ``OSError`` where none can be made."""
    folder = Path(tempfile.mkdtemp(prefix="tilewright-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
