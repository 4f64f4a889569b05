"""Where caches go, and that nothing fails where they cannot go anywhere."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tilewright.foundation import caches, trust
from tilewright.foundation import compiled as compiled_functions
from tilewright.foundation.caches import cache_folder, is_writable, temporary_folder

NOWHERE = "/dev/null/none"
"""No folder can be made here, not even by the system's administrator."""


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without a home; returns the temporary directory."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.delenv(caches.VARIABLE, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_without_a_home_tables_go_to_the_temporary_directory(homeless: Path) -> None:
    """The folder is this user's own."""
    folder = cache_folder()
    assert folder.parent == homeless
    assert is_writable(folder)
    assert folder.stat().st_mode & 0o077 == 0
    assert cache_folder() == folder


def test_a_user_without_a_name_has_no_home(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that the system does not know, without HOME, has the temporary folder as well."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert caches.usual_folder() is None
    assert cache_folder().parent == homeless


def test_a_folder_that_others_may_fill_is_not_used(homeless: Path, tmp_path: Path) -> None:
    """What is read from a cache is run, so a folder open to others, or a link, is passed over."""
    own = temporary_folder()
    assert own is not None
    own.chmod(0o777)
    assert temporary_folder() is None
    assert cache_folder() != own
    shutil.rmtree(own)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    own.symlink_to(elsewhere)
    assert temporary_folder() is None


MODULE = """
from tilewright.foundation.compiled import compiled

@compiled
def twice(number):
    return 2 * number
"""


def imported(path: Path, text: str = MODULE) -> Any:
    """A module from a file with a text, as another process would see it."""
    path.write_text(text)
    compiled_functions.digest_of.cache_clear()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def test_code_is_kept_once_and_made_again_where_its_file_is_broken(tmp_path: Path) -> None:
    """Who comes later loads the file; one that is cut short or changed counts for nothing."""
    path = tmp_path / "kept_module.py"
    assert not imported(path).twice.is_cached
    assert imported(path).twice(3) == 6
    (file,) = tmp_path.rglob("*.code")
    whole, written = file.read_bytes(), file.stat().st_mtime_ns
    assert imported(path).twice.is_cached
    assert imported(path).twice(4) == 8
    assert file.stat().st_mtime_ns == written
    for broken in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), whole[:40], whole[1:]):
        file.write_bytes(broken)
        assert imported(path).twice(5) == 10
        assert file.read_bytes() == whole


def test_a_disk_that_takes_nothing_costs_only_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The function is compiled all the same."""
    monkeypatch.setattr(trust, "write", lambda *_arguments: False)
    assert imported(tmp_path / "full_module.py").twice(5) == 10
    assert not [*tmp_path.rglob("*.code")]


CALLER = """
from tilewright.foundation.compiled import compiled
from tilewright.{callee} import (
    inner,
)

@compiled
def outer(number):
    return 10 * inner(number)
"""
CALLEE = """
from tilewright.foundation.compiled import compiled
from tilewright import {numbers} as numbers

@compiled
def inner(number):
    return number + numbers.STEP
"""


def test_code_is_made_anew_where_what_it_calls_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A constant of a module that it calls counts, too."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within a second
    names = {name: f"cached_{name}" for name in ("numbers", "callee", "caller")}

    def called(step: int) -> tuple[int, bool]:
        texts = {"numbers": f"STEP = {step}\n", "callee": CALLEE, "caller": CALLER}
        compiled_functions.digest_of.cache_clear()
        for name, text in texts.items():
            path = tmp_path / f"{names[name]}.py"
            path.write_text(text.format(**names) if name != "numbers" else text)
            spec = importlib.util.spec_from_file_location(f"tilewright.{names[name]}", path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, f"tilewright.{names[name]}", module)
            monkeypatch.setattr(tilewright, names[name], module, raising=False)
            spec.loader.exec_module(module)
        outer = sys.modules[f"tilewright.{names['caller']}"].outer
        kept = outer.is_cached
        return outer(1), kept

    assert called(1) == (20, False)
    assert called(1) == (20, True)
    assert called(2) == (30, False)


CALLS = {
    "map": ("map", "gemm:M=96,N=80,K=72", "-a", "eyeriss-168", "--deterministic"),  # compiled search alone
    "schedule": ("schedule", "alexnet", "--system", "atomic-2x2", "--method", "set", "-t", "60"),
}


@pytest.mark.parametrize("verb", ["map", pytest.param("schedule", marks=pytest.mark.slow)])
def test_answers_come_where_nothing_can_be_written(tmp_path: Path, verb: str) -> None:
    """Package, home and caches are not writable: answers are the same, and nothing is said of it."""
    package = tmp_path / "installed" / "tilewright"
    source = Path(tilewright.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"), copy_function=os.symlink)
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").write_text("")  # a file in its place: nobody can write into it
    room = tmp_path / "room"
    room.mkdir()
    environment = {
        **os.environ,
        "HOME": NOWHERE,
        "XDG_CACHE_HOME": NOWHERE,
        "PYTHONPATH": str(package.parent),
        "TMPDIR": str(room),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop(caches.VARIABLE, None)
    command = [sys.executable, "-m", "tilewright", *CALLS[verb], "-q"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("optimal" if verb == "map" else "gap") in done.stdout
    assert [*room.rglob("*.bounds-*.code" if verb == "map" else "*.complete-*.code")]
