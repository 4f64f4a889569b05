"""Files read and written: the one place where content crosses the edge of the program.

What is read is a regular file or a pipe, up to a stated size.  What is written is whole or not there: beside
its place first and renamed, through symbolic links onto what they lead to.  What is no regular file (a
device, a pipe, an open descriptor such as ``/dev/stdout``) cannot be replaced and is written straight.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from functools import partial as bound
from pathlib import Path

from tilewright.foundation.errors import InputError, OutputError
from tilewright.foundation.loading import begin_reading, check_limit
from tilewright.foundation.pipes import PATIENCE, Pipe

DESCRIPTION_BYTES = 2**20
"""The largest machine or system file."""
YAML_BYTES = 2**26
"""The largest other YAML file."""
DOCUMENT_BYTES = 2**31
"""The largest JSON document or ONNX model."""

_CHUNK = 2**20
_LINKS = 40
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def size_text(size: int) -> str:
    """A power of 1024 with its unit: ``64 MB``."""
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} bytes"


def read_bytes(path: Path, most: int, what: str) -> bytes:
    """The content of a regular file or of a pipe.

    Parameters
    ----------
    most : bytes that it may have
    what : what the file should be, for messages

    Raises
    ------
    InputError : for a file that cannot be read, is a folder or a device, or is larger
    """
    where = str(path)
    begin_reading()
    try:
        status = path.stat()
        for is_kind, name in _KINDS:
            if is_kind(status.st_mode):
                raise InputError(where, None, f"cannot be read: {name}, expected {what}")
        if stat.S_ISREG(status.st_mode) and status.st_size > most:
            raise InputError(where, None, f"larger than {size_text(most)}, expected {what}")
        is_pipe = stat.S_ISFIFO(status.st_mode)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if is_pipe else 0))
        parts, size = [], 0
        try:
            read = Pipe(handle, where).read if is_pipe else bound(os.read, handle)
            while size <= most and (part := read(min(_CHUNK, most + 1 - size))):
                check_limit(where)
                parts.append(part)
                size += len(part)
        finally:
            os.close(handle)
    except InputError:
        raise
    except OSError as error:
        raise InputError(where, None, f"cannot be read: {error.strerror or error}, expected {what}") from None
    except ValueError as error:  # a name with a NUL in it
        raise InputError(where, None, f"cannot be read: {error}, expected {what}") from None
    if size > most:
        raise InputError(where, None, f"larger than {size_text(most)}, expected {what}")
    return b"".join(parts)


def read_text(path: Path, most: int, what: str) -> str:
    """The same as text; a byte-order mark is left out.  Raises ``InputError``, also for what is not UTF-8."""
    try:
        return read_bytes(path, most, what).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(str(path), None, f"expected a text file in UTF-8, {what}") from None


def suffix_error(path: Path, known: tuple[str, ...], hint: str = "") -> InputError:
    """What to say of a file whose ending stands for no format."""
    return InputError(str(path), None, f"expected a file that ends in one of: {', '.join(known)}{hint}")


def is_stream(path: Path) -> bool:
    """Whether what is written there cannot be replaced: a device, a pipe, an open descriptor."""
    try:
        return _descriptor(path) is not None or not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def check_writable(path: Path) -> None:
    """Raise ``InputError`` where a file could not be written, before anything is computed."""
    where = str(path)
    try:
        if "\0" in where:
            raise ValueError("embedded null byte")
        if path.is_dir():
            raise InputError(where, None, "is a folder, expected a file to write")
        if is_stream(path):
            if _descriptor(path) is None and not os.access(path, os.W_OK):
                raise InputError(where, None, f"cannot be written: {os.strerror(errno.EACCES)}")
            return
        target = _target(path)
        if not target.parent.is_dir():
            raise InputError(where, None, f"cannot be written: no folder {target.parent}")
        if target.exists() and not os.access(target, os.W_OK):
            raise InputError(where, None, f"cannot be written: {os.strerror(errno.EACCES)}")
        if len(os.fsencode(target.name)) > os.pathconf(target.parent, "PC_NAME_MAX"):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        handle, partial = _partial_file(target)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(where, None, str(OutputError(path, error)).partition(": ")[2]) from None
    os.close(handle)
    partial.unlink()


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old or the new content, whatever happens in between.

    An existing file keeps its mode, a new one has the one that the umask leaves.

    Raises
    ------
    OutputError : naming the file and the reason; then the old content, or none, is there
    """
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    try:
        if is_stream(path):
            _write_straight(path, data)
        else:
            _replace(_target(path), data)
    except (OSError, ValueError) as error:
        raise OutputError(path, error) from None


def _replace(target: Path, data: bytes) -> None:
    handle, partial = _partial_file(target)
    try:
        try:
            _write_all(handle, data)
            if target.exists():
                _adopt(handle, target.stat())
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _adopt(handle: int, former: os.stat_result) -> None:
    """Mode and, as far as that is allowed, owner of the file that is replaced."""
    own = os.fstat(handle)
    if (own.st_uid, own.st_gid) != (former.st_uid, former.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(handle, former.st_uid, former.st_gid)
    os.fchmod(handle, stat.S_IMODE(former.st_mode))


def _partial_file(target: Path) -> tuple[int, Path]:
    """A new file in the same folder, with the mode that the umask leaves."""
    partial = target.with_name(f".tilewright-{secrets.token_hex(8)}.partial")
    return os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), partial


def _target(path: Path) -> Path:
    """What symbolic links lead to, whether it exists or not; raises ``OSError`` for links in a circle."""
    for _ in range(_LINKS):
        if not path.is_symlink():
            return path
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _descriptor(path: Path) -> int | None:
    """The open descriptor of this process that a path such as ``/dev/stdout`` stands for."""
    own = (f"/proc/{os.getpid()}/fd", "/proc/self/fd", "/dev/fd")
    for _ in range(_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) in own:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _write_straight(path: Path, data: bytes) -> None:
    number = _descriptor(path)
    handle = _opened(path) if number is None else os.dup(number)
    try:
        _write_all(handle, data)
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    """A device or pipe, open for writing; a pipe must have a reader within seconds."""
    waited = time.monotonic() + PATIENCE
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > waited:
                raise
            time.sleep(0.05)
        else:
            os.set_blocking(handle, True)
            return handle


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
