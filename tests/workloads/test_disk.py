"""Files at the edge of the program: replaced whole, links followed, devices and pipes written straight."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.foundation.disk import check_writable, is_stream, read_bytes, read_text, write_file
from tilewright.foundation.errors import InputError, OutputError


@pytest.fixture
def mask() -> Iterator[int]:
    """A umask that differs from what temporary files have."""
    former = os.umask(0o027)
    yield 0o027
    os.umask(former)


def test_modes(tmp_path: Path, mask: int) -> None:
    """A new file has what the umask leaves, an existing one keeps its own mode."""
    path = tmp_path / "a.json"
    write_file(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o604)
    write_file(path, "again")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o604, "again")


def test_links_are_followed(tmp_path: Path) -> None:
    """Through links, dangling ones too, the file that they lead to is replaced and the links stay."""
    (tmp_path / "there").mkdir()
    (tmp_path / "far.json").symlink_to("near.json")
    (tmp_path / "near.json").symlink_to("there/real.json")
    for text in ("first", "second"):
        check_writable(tmp_path / "far.json")
        write_file(tmp_path / "far.json", text)
        assert (tmp_path / "there" / "real.json").read_text() == text
    assert (tmp_path / "far.json").is_symlink()
    assert (tmp_path / "near.json").is_symlink()
    assert [entry.name for entry in (tmp_path / "there").iterdir()] == ["real.json"]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    """What is written to a FIFO reaches its reader; without one it is an error, and the FIFO remains."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert is_stream(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(read_bytes(path, 100, "a test")))
    reader.start()
    write_file(path, "through")
    reader.join()
    assert got == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_devices_stay_devices(tmp_path: Path) -> None:
    """A full device is an error that names it, the null device takes everything; links are followed."""
    (tmp_path / "null").symlink_to("/dev/null")
    write_file(tmp_path / "null", "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left on device"):
        write_file(Path("/dev/full"), "gone")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_an_open_descriptor_keeps_its_place(tmp_path: Path) -> None:
    """A path of an open descriptor appends where that stands and does not replace the file behind it."""
    with (tmp_path / "out.txt").open("w") as stream:
        stream.write("before ")
        stream.flush()
        path = Path(f"/dev/fd/{stream.fileno()}")
        assert is_stream(path)
        write_file(path, "after")
    assert (tmp_path / "out.txt").read_text() == "before after"


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "loop", "none/x", "none/../x", "."])
def test_what_cannot_be_written_is_told_beforehand(tmp_path: Path, name: str) -> None:
    """Long names, NULs, circles of links and missing folders are one line, and leave nothing."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError) as caught:
        check_writable(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["loop"]


def test_what_is_read(tmp_path: Path) -> None:
    """Folders, devices, long names, other encodings and what is too large are refused by name."""
    (tmp_path / "latin").write_bytes(b"\xe9")
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbftext")
    assert read_text(tmp_path / "mark", 10, "a test") == "text"
    cases = [
        (tmp_path, "a folder"),
        (Path("/dev/zero"), "a device"),
        (tmp_path / ("x" * 300), "too long"),
        (tmp_path / "a\0b", "null"),
        (tmp_path / "latin", "UTF-8"),
        (tmp_path / "no", "No such"),
    ]
    for path, reported in cases:
        with pytest.raises(InputError, match=reported):
            read_text(path, 10, "a test")
    with pytest.raises(InputError, match="larger than 3 bytes, expected a test"):
        read_text(tmp_path / "mark", 3, "a test")
