"""Folders for what is kept between calls, and substitutes where nothing can be written.

A package on a read-only file system, a user without a home, a full disk: none of them stops a search.  Caches
then go to a folder of this user's own under the temporary directory, and where not even that can be had, to
one that ends with the process, or nowhere.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

VARIABLE = "TILEWRIGHT_CACHE"


def cache_folder() -> Path:
    """The folder that ``TILEWRIGHT_CACHE`` names, else the user's, else a temporary one."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    import platformdirs

    usual = Path(platformdirs.user_cache_dir("tilewright"))
    return usual if is_writable(usual) else temporary_folder() or _passing_folder()


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made itself where it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def temporary_folder() -> Path | None:
    """This user's own folder under the temporary directory; ``None`` where there can be none.

    What is read from a cache is run or believed, so one that others could fill is no cache.
    """
    # where users have no numbers, the temporary directory is the user's own
    owner = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    try:
        folder = Path(tempfile.gettempdir()) / f"tilewright{owner}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    if owner and (found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return folder if is_writable(folder) else None


def leave_no_empty_folder() -> None:
    """Remove this user's folder under the temporary directory where nothing was kept in it."""
    owner = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    with suppress(OSError):  # not there, or not empty
        (Path(tempfile.gettempdir()) / f"tilewright{owner}").rmdir()


@cache
def _passing_folder() -> Path:
    """A folder that is gone with the process; raises ``OSError`` where none can be made."""
    folder = Path(tempfile.mkdtemp(prefix="tilewright-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
