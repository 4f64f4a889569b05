"""Which cached files are executed: those that nobody but this user can have written.

Machine code and pickles run with this user's rights the moment they are loaded, so a folder that somebody
else can fill is no place for them.  A folder is trusted where

- it is a folder and no link, of this user's or of root's, and neither its group nor others can write to it;
- the same holds of every folder above it, but that one may be sticky, as ``/tmp`` is, since nobody can
  exchange there what is not his, and that the user's private group may write to it.

A file in it is read under the same conditions.  Folders are made with mode 0700; files are written beside
their place, made by this process alone with mode 0600, and then moved there.  What lies next to a module of
this program may also be its owner's, who can write that as well, whatever is above the two; all may read it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ROOT = 0
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no wait for a pipe
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DistrustError(PermissionError):
    """Somebody else can have written what lies here."""


def doubt(folder: Path, module: Path | None = None) -> str | None:
    """Why nothing is run that lies in a folder; ``None`` where it is trusted, or there is none.

    Parameters
    ----------
    module : the file of this program beside which the folder lies
    """
    try:
        with _held(folder, module):
            return None
    except DistrustError as error:
        return str(error)
    except OSError:
        return None


def make(folder: Path, module: Path | None = None) -> None:
    """Make a folder and those above it that are missing, for this user alone.

    Raises
    ------
    OSError : where that cannot be done
    """
    for missing in reversed([place for place in (folder, *folder.parents) if not os.path.lexists(place)]):
        with suppress(FileExistsError):
            missing.mkdir(mode=0o700 if module is None else 0o755)


def read(file: Path, module: Path | None = None) -> bytes | None:
    """The content of a file; ``None`` where there is none, or somebody else can have written it."""
    try:
        with _held(file.parent, module) as folder:
            opened = os.open(file.name, _READ, dir_fd=folder)
            with open(opened, "rb") as stream:
                status = os.fstat(opened)
                if not stat.S_ISREG(status.st_mode) or _fault(status, _owners(module)):
                    return None
                return stream.read()
    except OSError:
        return None


def write(file: Path, content: bytes, module: Path | None = None) -> bool:
    """Whether a file could be written; another process sees all of it or nothing.

    A folder that is missing is made; into one that is not trusted nothing is written.
    """
    passing = f"{file.name}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        make(file.parent, module)
        with _held(file.parent, module) as folder:
            opened = os.open(passing, _WRITE, 0o600, dir_fd=folder)
            try:
                with open(opened, "wb") as stream:
                    stream.write(content)
                    if module is not None:
                        os.fchmod(opened, 0o644)
                os.replace(passing, file.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(passing, dir_fd=folder)
                raise
    except OSError:
        return False
    return True


@contextmanager
def _held(folder: Path, module: Path | None) -> Iterator[int]:
    """A trusted folder's descriptor: nobody can put another one in its place meanwhile.

    Raises
    ------
    DistrustError : with the reason
    OSError : where there is none, or it cannot be opened
    """
    owners = _owners(module)
    real = Path(os.path.realpath(folder.parent)) / folder.name
    for above in reversed(real.parents if module is None else real.parents[:1]):
        fault = _fault(above.lstat(), {*owners, _root_owner()}, above=True)
        if fault:
            raise DistrustError(f"{folder}: lies in {above}, which {fault}")
    if stat.S_ISLNK(real.lstat().st_mode):
        raise DistrustError(f"{folder}: is a link")
    opened = os.open(real, _FOLDER)
    try:
        fault = _fault(os.fstat(opened), owners)
        if fault:
            raise DistrustError(f"{folder}: {fault}")
        yield opened
    finally:
        os.close(opened)


def _owners(module: Path | None) -> set[int]:
    """Who is trusted: this user, root, and who owns the module."""
    return {os.geteuid(), _ROOT, *(() if module is None else (module.stat().st_uid,))}


def _root_owner() -> int:
    """Root as it is seen here: in a container that does not know root's number it has another one."""
    return os.stat("/").st_uid


def _fault(entry: os.stat_result, owners: set[int], *, above: bool = False) -> str:
    """What is wrong with a folder or file; the empty text where nothing is.

    Parameters
    ----------
    above : whether it is a folder above the one in question
    """
    if entry.st_uid not in owners:
        return f"belongs to another user (number {entry.st_uid})"
    open_to = entry.st_mode & _OTHERS
    if above and (entry.st_mode & stat.S_ISVTX or (open_to == stat.S_IWGRP and _is_private(entry.st_gid))):
        return ""
    return f"others can write to (mode {stat.S_IMODE(entry.st_mode):04o})" if open_to else ""


def _is_private(group: int) -> bool:
    """Whether a group is this user's own: many systems give every user one, and let it write by default."""
    try:
        user, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == user and set(entry.gr_mem) <= {user}
