"""Where caches go, and that nothing fails where they cannot go anywhere."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

import tilewright
from tilewright.formulation import caches
from tilewright.formulation import compiled as compiled_functions
from tilewright.formulation.caches import cache_folder, is_writable, temporary_folder
from tilewright.formulation.compiled import compiled, is_kept

NOWHERE = "/dev/null/none"
"""No folder can be made here, not even by the system's administrator."""


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without a home; returns the temporary directory."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, NOWHERE)
    for name in (caches.VARIABLE, "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_without_a_home_tables_go_to_the_temporary_directory(homeless: Path) -> None:
    """The folder is this user's own."""
    folder = cache_folder()
    assert folder.parent == homeless
    assert is_writable(folder)
    assert folder.stat().st_mode & 0o077 == 0
    assert cache_folder() == folder


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


def test_a_broken_cache_costs_only_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kept file that is cut short, and a disk that takes nothing, leave the function as it is."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))

    def twice(number: int) -> int:
        return 2 * number

    assert compiled(twice)(3) == 6
    files = [file for file in (tmp_path / "kept").rglob("*") if file.is_file()]
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:10])
    again = compiled(twice)
    assert again(4) == 8

    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    third = compiled(twice)
    monkeypatch.setattr(third._cache._inner, "save_overload", refuse)  # type: ignore[attr-defined]
    assert third(5) == 10


def test_an_index_that_cannot_be_read_is_written_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An earlier version may have kept types of modules that are gone; the next process finds all well."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))

    def half(number: int) -> int:
        return number // 2

    first = compiled(half)
    assert not is_kept(first)
    assert first(6) == 3
    assert is_kept(first)
    (index,) = (tmp_path / "kept").rglob("*.nbi")
    whole = index.read_bytes()
    index.write_bytes(whole[: whole.index(b".") + 1] + b"cno_such_module\nkind\n.")
    again = compiled(half)
    assert not is_kept(again)
    assert again(6) == 3
    assert is_kept(again)


CALLER = """
from tilewright.formulation.compiled import compiled
from tilewright.{callee} import (
    inner,
)

@compiled
def outer(number):
    return 10 * inner(number)
"""
CALLEE = """
from tilewright.formulation.compiled import compiled
from tilewright import {numbers} as numbers

@compiled
def inner(number):
    return number + numbers.STEP
"""


def test_code_is_made_anew_where_what_it_calls_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Numba looks at the function's own file alone; a constant of a module that it calls counts, too."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    names = {name: f"cached_{name}" for name in ("numbers", "callee", "caller")}

    def called(step: int) -> tuple[int, int]:
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
        return outer(1), sum(outer.stats.cache_hits.values())

    assert called(1) == (20, 0)
    assert called(1) == (20, 1)
    assert called(2) == (30, 0)


def test_without_any_room_functions_are_compiled_all_the_same(homeless: Path) -> None:
    """Nothing is kept of a function without a file, and nothing fails."""
    scope: dict[str, object] = {}
    exec(compile("def thrice(number):\n    return 3 * number\n", "nowhere.py", "exec"), scope)
    made = compiled(scope["thrice"])  # type: ignore[type-var]
    assert made(2) == 6  # type: ignore[operator]
    assert made.stats.cache_path is None  # type: ignore[attr-defined]
    assert cache_folder().is_dir()


CALLS = {
    "map": ("map", "gemm:M=96,N=80,K=72", "-a", "eyeriss-168", "--deterministic"),  # compiled search alone
    "schedule": ("schedule", "alexnet", "--system", "atomic-2x2", "--method", "set", "-t", "5"),
}


@pytest.mark.parametrize("verb", ["map", pytest.param("schedule", marks=pytest.mark.slow)])
def test_answers_come_where_nothing_can_be_written(tmp_path: Path, verb: str) -> None:
    """Package, home and caches are not writable: answers are the same, and nothing is said of it."""
    package = tmp_path / "installed" / "tilewright"
    source = Path(tilewright.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
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
    }
    for name in (caches.VARIABLE, "NUMBA_CACHE_DIR"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "tilewright", *CALLS[verb], "-q"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("optimal" if verb == "map" else "gap") in done.stdout
    assert [*room.rglob("bounds-*.code" if verb == "map" else "*.nbi")]
