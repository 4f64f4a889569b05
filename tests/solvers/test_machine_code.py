"""Machine code that runs without its compiler: made once, refused where it is not complete."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tilewright.solvers.machine_code import IncompleteCodeError, MachineCode, _object_code

_numba: Any = numba
_array = _numba.carray
SIGNATURE = _numba.types.int64(_numba.types.CPointer(_numba.types.int64))


def doubled(numbers: Any) -> int:
    """Twice the sum of three numbers."""
    found = 0
    for number in range(3):
        found += 2 * _array(numbers, (3,))[number]
    return found


def allocating(numbers: Any) -> int:
    """The same with an array of its own."""
    room = np.ones(_array(numbers, (3,))[0])
    return int(room.sum())


def code(function: Callable[..., int], folder: Path, made: list[str]) -> MachineCode:
    """Machine code kept in a folder; ``made`` tells how often it was compiled."""

    def compile() -> Any:
        made.append(function.__name__)
        return _numba.cfunc(SIGNATURE, nopython=True, error_model="numpy")(function)

    (folder / "source.py").write_text(function.__name__)
    return MachineCode("test", compile, [folder / "source.py"], [ctypes.c_void_p])


def test_it_is_compiled_once_and_again_where_its_file_is_broken(tmp_path: Path) -> None:
    """Who comes later loads the file; one that is cut short or changed counts for nothing."""
    numbers, made = (ctypes.c_int64 * 3)(1, 2, 30), list[str]()
    assert code(doubled, tmp_path, made).kept is None
    for _ in range(2):
        assert code(doubled, tmp_path, made).load()(ctypes.addressof(numbers)) == 66
    assert made == ["doubled"]
    file = code(doubled, tmp_path, made).kept
    assert file is not None
    whole = file.read_bytes()
    for broken in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(broken)
        assert code(doubled, tmp_path, made).kept is None
    assert code(doubled, tmp_path, made).load()(ctypes.addressof(numbers)) == 66
    assert made == ["doubled", "doubled"]
    assert file.read_bytes() == whole


def test_code_that_needs_the_compiler_where_it_runs_is_not_kept(tmp_path: Path) -> None:
    """An array of its own is numba's to free: such code runs in the process that compiled it."""
    numbers, made = (ctypes.c_int64 * 3)(7, 2, 30), list[str]()
    for _ in range(2):
        assert code(allocating, tmp_path, made).load()(ctypes.addressof(numbers)) == 7
    assert made == ["allocating", "allocating"]
    assert not [*tmp_path.rglob("*.code")]
    with pytest.raises(IncompleteCodeError, match="calls"):
        _object_code(_numba.cfunc(SIGNATURE, nopython=True)(allocating))
