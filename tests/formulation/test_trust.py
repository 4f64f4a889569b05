"""What is run of kept files: real folders and files, as others leave them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.foundation import caches, trust
from tilewright.foundation.compiled import digest_of

OTHER = 4321
"""The number of another user, who need not exist."""

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")

CONTENT = b"content"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A file in a trusted folder."""
    file = tmp_path / "above" / "folder" / "file"
    assert trust.write(file, CONTENT)
    return file


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that leaves everything open to all."""
    before = os.umask(0)
    yield
    os.umask(before)


def linked(path: Path) -> None:
    """Move something elsewhere and leave a link in its place."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "open to all": (lambda folder: folder.chmod(0o777), "others can write to (mode 0777)"),
    "open to its group": (lambda folder: folder.chmod(0o770), "others can write to (mode 0770)"),
    "sticky": (lambda folder: folder.chmod(0o1777), "others can write to (mode 1777)"),
    "a link": (linked, "is a link"),
    "below an open one": (lambda folder: folder.parent.chmod(0o777), "lies in"),
}
THEIRS: dict[str, tuple[Callable[[Path], object], str]] = {
    "another's": (lambda folder: os.chown(folder, OTHER, OTHER), f"another user (number {OTHER})"),
    "below another's": (lambda folder: os.chown(folder.parent, OTHER, OTHER), "lies in"),
    "another's sticky one above": (
        lambda folder: (os.chown(folder.parent, OTHER, OTHER), folder.parent.chmod(0o1777)),
        "lies in",
    ),
}
FILES: dict[str, Callable[[Path], object]] = {
    "open to all": lambda file: file.chmod(0o666),
    "open to its group": lambda file: file.chmod(0o620),
    "a link": linked,
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file, 0o600)),
    "a folder": lambda file: (file.unlink(), file.mkdir(mode=0o700)),
}
FOLDER_CASES = [
    *(pytest.param(*case, id=name) for name, case in FOLDERS.items()),
    *(pytest.param(*case, id=name, marks=AS_ROOT) for name, case in THEIRS.items()),
]
CODE_CASES = [
    pytest.param(place, spoil, id=f"{place}, {name}", marks=AS_ROOT if name in THEIRS else ())
    for name, (spoil, reason) in (FOLDERS | THEIRS).items()
    for place in ("beside", "named")
    if place == "named" or reason != "lies in"  # what is above a module is as trusted as the module
]


def test_what_is_written_is_this_users_alone(careless: None, tmp_path: Path) -> None:
    """Folders have mode 0700 and files 0600, whatever the umask; no partial file is left."""
    file = tmp_path / "made" / "below" / "file"
    assert trust.write(file, CONTENT)
    assert trust.read(file) == CONTENT
    assert [path.stat().st_mode & 0o777 for path in (file.parent.parent, file.parent, file)] == [
        0o700,
        0o700,
        0o600,
    ]
    assert [*file.parent.iterdir()] == [file]
    assert trust.write(file, b"other")
    assert trust.read(file) == b"other"


def test_what_lies_beside_a_module_can_be_read_by_all(careless: None, tmp_path: Path) -> None:
    """What root compiles of a system-wide installation serves its users; only the owner can write it."""
    module = tmp_path / "module.py"
    module.write_text("")
    file = tmp_path / "__pycache__" / "file"
    assert trust.write(file, CONTENT, module)
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o755, 0o644)
    assert trust.read(file, module) == CONTENT


def test_a_module_that_others_can_exchange_is_no_warrant(careless: None, tmp_path: Path) -> None:
    """Where others can write to the package's own folder, what lies below it is not trusted either."""
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()
    module.write_text("")
    file = module.parent / "__pycache__" / "file"
    assert not trust.write(file, CONTENT, module)
    module.parent.chmod(0o755)
    assert trust.write(file, CONTENT, module)
    module.parent.chmod(0o777)
    assert trust.read(file, module) is None


@pytest.mark.parametrize(("spoil", "reason"), FOLDER_CASES)
def test_a_folder_that_others_can_fill_is_not_used(
    kept: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    """Nothing is read from it, nothing written, and the reason is told."""
    assert trust.doubt(kept.parent) is None
    spoil(kept.parent)
    assert trust.read(kept) is None
    assert not trust.write(kept, b"new")
    assert not caches.is_writable(kept.parent)
    assert reason in (trust.doubt(kept.parent) or "")
    assert [path.name for path in kept.parent.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "spoil",
    [
        *(pytest.param(spoil, id=name) for name, spoil in FILES.items()),
        pytest.param(lambda file: os.chown(file, OTHER, OTHER), id="another's", marks=AS_ROOT),
    ],
)
def test_a_file_that_others_can_write_is_not_read(kept: Path, spoil: Callable[[Path], object]) -> None:
    """It counts for nothing; a new one takes its place, and where a link led is left alone."""
    spoil(kept)
    assert trust.read(kept) is None
    written = trust.write(kept, b"new")
    assert written != kept.is_dir()
    assert trust.read(kept) == (b"new" if written else None)
    elsewhere = kept.with_name("elsewhere")
    assert not elsewhere.exists() or elsewhere.read_bytes() == CONTENT


def test_links_above_are_followed_to_what_is_trusted(kept: Path, tmp_path: Path) -> None:
    """A home or a ``.cache`` may be a link; what it leads to is judged."""
    (tmp_path / "link").symlink_to(kept.parents[1])
    assert trust.read(tmp_path / "link" / "folder" / "file") == CONTENT
    kept.parents[1].chmod(0o777)
    assert trust.read(tmp_path / "link" / "folder" / "file") is None


def test_a_sticky_folder_above_is_no_danger(kept: Path) -> None:
    """Nobody exchanges in it what is not his: so it is with the temporary directory."""
    kept.parents[1].chmod(0o1777)
    assert trust.read(kept) == CONTENT


def test_a_private_groups_folder_above_is_no_danger(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many systems give every user a group and let it write by default; a shared group is another thing."""
    kept.parents[1].chmod(0o775)
    for private in (True, False):
        monkeypatch.setattr(trust, "_is_private", lambda group, private=private: private)
        assert (trust.read(kept) is None) != private


READER = """
import os, sys
from pathlib import Path
from tilewright.foundation import trust
os.setgid({user})
os.setuid({user})
print([trust.read(Path(path)) for path in sys.argv[1:]])
"""


@AS_ROOT
def test_another_user_reads_what_is_his_or_roots(tmp_path: Path) -> None:
    """In a process of another user: his own and root's files are read, a third one's are not."""
    base = Path(tempfile.mkdtemp(dir="/tmp"))  # others cannot look into the folders of tests
    try:
        base.chmod(0o755)
        files = []
        for name, owner in (("own", OTHER), ("roots", 0), ("thirds", OTHER + 1)):
            file = base / name / "file"
            assert trust.write(file, name.encode())
            file.chmod(0o644)
            file.parent.chmod(0o755)
            os.chown(file, owner, owner)
            os.chown(file.parent, owner, owner)
            files.append(str(file))
        program = READER.format(user=OTHER)
        done = subprocess.run([sys.executable, "-c", program, *files], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("[b'own', b'roots', None]\n", "")
    finally:
        shutil.rmtree(base)


def test_a_named_folder_that_others_can_fill_is_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``TILEWRIGHT_CACHE`` may name an open folder or a link: another folder is used, which is private."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    named = tmp_path / "named"
    monkeypatch.setenv(caches.VARIABLE, str(named))
    assert caches.cache_folder() == named
    named.mkdir(mode=0o700)
    assert caches.cache_folder() == named
    named.chmod(0o777)
    instead = caches.cache_folder()
    assert instead != named
    assert trust.doubt(instead) is None
    named.chmod(0o700)
    linked(named)
    assert caches.cache_folder() == instead


MODULE = """
from tilewright.foundation.compiled import compiled

@compiled
def twice(number):
    return 2 * number
"""


def imported(path: Path, text: str) -> Any:
    """A module from a file with a text."""
    path.write_text(text)
    digest_of.cache_clear()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("place", "spoil"), CODE_CASES)
def test_no_machine_code_is_loaded_from_where_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, spoil: Callable[[Path], object]
) -> None:
    """Code that somebody planted, of the right name and digests, is not run: the answer is right."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(caches.VARIABLE, str(tmp_path / "own"))
    path = tmp_path / "package" / "hostile_module.py"
    path.parent.mkdir()
    if place == "named":
        (path.parent / "__pycache__").write_text("")  # no folder can be made here
    assert imported(path, MODULE.replace("2 *", "3 *")).twice(2) == 6
    (kept,) = tmp_path.rglob("*.code")
    content = kept.read_bytes()
    assert not imported(path, MODULE).twice.is_cached
    kept.write_bytes(digest_of(path.stem) + content[32:])
    assert imported(path, MODULE).twice(2) == 6  # planted, and trusted
    spoil(kept.parent)
    honest = imported(path, MODULE).twice
    assert not honest.is_cached
    assert honest(2) == 4
