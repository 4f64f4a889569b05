"""Machine code of kernels: what the interpreter makes of the same text, to the last bit."""

from __future__ import annotations

import importlib.util
import itertools
import math
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from effort import effort

from tilewright.foundation.compiled import CompiledFunction, compiled, is_ready
from tilewright.foundation.kernels.source import Source
from tilewright.foundation.kernels.types import KernelTypeError, Type, type_of

WHOLE = (0, 1, -1, 2, -3, 7, -8, 63, 1 << 40, -(1 << 40), (1 << 62) - 1, -(1 << 62))
REAL = (0.0, -0.0, 1.0, -1.5, 0.1, 7.25, -1e300, 1e-300, math.inf)


class Pair(NamedTuple):
    """Two things with names."""

    first: Any
    second: Any


def same(computed: Any, other: Any) -> bool:
    """Whether two results are equal, bit for bit."""
    if isinstance(computed, tuple):
        kinds = type(computed) is type(other) or not hasattr(other, "_fields")
        return kinds and len(computed) == len(other) and all(map(same, computed, other))
    if isinstance(computed, np.ndarray):
        return (
            computed.dtype == other.dtype
            and computed.shape == other.shape
            and computed.tobytes() == other.tobytes()
        )
    if isinstance(computed, float) or isinstance(other, float | np.floating):
        return np.float64(computed).tobytes() == np.float64(other).tobytes()
    return bool(computed == other)


@compiled
def divided(a: int, b: int) -> Any:
    return a // b, a % b


@compiled
def compared(a: Any, b: Any) -> Any:
    return a < b, a <= b, a == b, a != b, a > b, a >= b, 0 <= a < b, not a, max(a, b), min(a, b), abs(a)


@compiled
def mixed(a: int, b: float) -> Any:
    return a + b, b - a, a * b, -b, float(a), b if a > 0 else a, b**2, max(a, b, 0)


@compiled
def bits(a: int, b: int) -> Any:
    return a & b, a | b, a ^ b, ~a, a >> (b & 31), (a & 0xFFFF) << (b & 31), -a, a and b if False else 5


@compiled
def real(a: float, b: float) -> Any:
    return a / b, a % b, a // b, np.floor(a), np.ceil(b), (a > b) + a


@compiled(ieee=True)
def unguarded(a: float, b: float) -> Any:
    return a / b


def test_whole_numbers_are_those_of_python() -> None:
    """Quotients, rests, bits and comparisons of all pairs of some numbers; overflow is left out."""
    for a, b in itertools.product(WHOLE, WHOLE):
        assert same(compared(a, b), compared.__wrapped__(a, b)), (a, b)  # type: ignore[attr-defined]
        assert same(bits(a, b), bits.__wrapped__(a, b)), (a, b)  # type: ignore[attr-defined]
        if b:
            assert divided(a, b) == (a // b, a % b)


def test_floats_are_those_of_python() -> None:
    """Sums, quotients, rests and comparisons of all pairs of some numbers have the same bits."""
    for a, b in itertools.product(REAL, REAL):
        if not (math.isinf(a) and math.isinf(b)):
            assert same(compared(a, b), compared.__wrapped__(a, b)), (a, b)  # type: ignore[attr-defined]
        if b and math.isfinite(a):
            assert same(real(a, b), real.__wrapped__(a, b)), (a, b)  # type: ignore[attr-defined]
        for whole in WHOLE:
            if math.isfinite(b) and abs(b) < 1e100:
                expected = mixed.__wrapped__(whole, b)  # type: ignore[attr-defined]
                assert same(mixed(whole, b), tuple(map(float, expected))), (whole, b)
    with np.errstate(all="ignore"):
        for a in (1.0, -1.0):
            assert same(unguarded(a, 0.0), float(np.float64(a) / np.float64(0.0)))


def test_what_fails_in_python_fails_here() -> None:
    """A division by 0, the largest entry of none, and lengths that do not match."""
    for function in (divided, real):
        with pytest.raises(ZeroDivisionError):
            function(1, 0)
    with pytest.raises(ValueError, match="empty"):
        summed(np.zeros(0), np.zeros(0))
    with pytest.raises(ValueError, match="match"):
        summed(np.ones(3), np.ones(4))


@compiled
def summed(row: Any, other: Any) -> Any:
    total = row.copy()
    total[:] = other
    return total.sum(), row.max(), row.min(), np.sum(other)


@compiled
def viewed(table: Any, row: int, begin: int, end: int) -> Any:
    """Entries, rows and parts of rows, from both ends."""
    line = table[row]
    part = table[row, begin:end]
    tail = line[begin:]
    size = 0
    for entry in part:
        size = size * 31 + entry
    for index in range(len(tail) - 1, -1, -1):
        size = size * 7 + tail[index] * len(part) + table[-1, index]
    table[row, begin:end] = 9
    tail[:1] = size % 100
    columns = table.shape[1]
    return size, columns, part.copy(), np.argsort(line), table[row][-1]


def test_views_of_arrays_are_those_of_numpy() -> None:
    """Rows and slices with borders inside and outside, of contiguous arrays and of such with gaps."""
    generator = np.random.default_rng(0)
    for kind in (np.int64, np.int32, np.int16, np.uint8):
        for row, begin, end in itertools.product((0, -1), (0, 1, -2, 9), (0, 3, -1, 12)):
            for gaps in (1, 2):
                table = generator.integers(0, 50, (3 * gaps, 5 * gaps)).astype(kind)[::gaps, ::gaps]
                compiled_table, other = table.copy(), table.copy()
                if gaps > 1:
                    compiled_table = np.repeat(np.repeat(compiled_table, 2, 0), 2, 1)[::2, ::2]
                    assert not compiled_table.flags.c_contiguous
                rows = other.astype(np.int64)
                size, columns, part, places, last = viewed(compiled_table, row, begin, end)
                expected = viewed.__wrapped__(rows, row, begin, end)  # type: ignore[attr-defined]
                assert (size, columns, last) == (int(expected[0]), expected[1], int(expected[4]))
                assert (part == expected[2]).all()
                assert (compiled_table == rows).all()
                line = table[row].copy()
                line[:] = rows[row]
                assert (places == np.argsort(line, kind="stable")).all()


@compiled
def recorded(pair: Pair, count: int) -> Any:
    """Names, tuples of tuples, and what functions return."""
    first, (low, high) = pair.first, pair.second
    both = Pair(first[1:], Pair(high, low))
    now, then = (both, pair) if count > 2 else (pair, both)
    total = 0
    for item in (now.second, then.second):
        total = total * 10 + item[0]
    for entry, other in zip(now.first, then.first, strict=False):
        total += entry * other
    steps = 0
    while True:
        steps += 1
        if steps % 2:
            continue
        if steps > count:
            break
    return both, total, steps, now.first


def test_tuples_keep_names_and_types() -> None:
    """A tuple that is returned is of its own class; arrays in it are new ones."""
    for count in (0, 3):
        pair = Pair(np.arange(4), (3, 4))
        expected = recorded.__wrapped__(Pair(pair.first, Pair(3, 4)), count)  # type: ignore[attr-defined]
        record = recorded(Pair(pair.first, Pair(3, 4)), count)
        assert same(record, expected)
        assert type(record[0]) is type(record[0].second) is Pair
        assert not np.shares_memory(record[3], pair.first)


@compiled
def rooms(count: int, size: int) -> Any:
    """Many arrays that nobody keeps, and one that is returned."""
    kept = np.full((2, size), 7, dtype=np.int32)
    total = 0
    for at in range(count):
        total += one_room(size, at)
    return kept, total


@compiled
def one_room(size: int, value: int) -> int:
    room, other = np.zeros(size, dtype=np.int64), np.ones(size)
    room[value % size] = value
    return room.sum() + len(other)


def test_memory_is_given_back() -> None:
    """1,000 times half a megabyte passes through a function that returns none of it."""
    kept, total = rooms(1_000, 60_000)
    assert (kept == 7).all()
    assert kept.shape == (2, 60_000)
    assert total == sum(range(1_000)) + 1_000 * 60_000


@compiled
def doubled(a: Any) -> Any:
    return a + a


def test_machine_code_is_made_beside_its_caller() -> None:
    """It is there after a while, for arguments of the kinds that were asked for."""
    seconds = time.monotonic() + 60
    while not is_ready(doubled, (1.5,)) and time.monotonic() < seconds:
        time.sleep(0.01)
    assert is_ready(doubled, (2.5,))
    assert len(doubled.versions) == 1  # type: ignore[attr-defined]
    assert doubled(2.5) == 5.0
    assert not is_ready(len, ((),))


def test_arguments_of_other_kinds_are_other_versions() -> None:
    """Whole numbers stand for floats, not the other way; what has no machine code says so."""

    assert compared(1, 2)[8] == 2
    assert compared(1.5, 2)[8] == 2.0
    assert compared(2.5, 2)[8] == 2.5
    assert compared(True, 2)[8] == 2
    for wrong in ("text", np.zeros(2, dtype=np.float32), [1], 1 + 2j):
        with pytest.raises(KernelTypeError):
            divided(wrong, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        divided(1)  # type: ignore[call-arg]


def random_kernel(generator: random.Random, name: str) -> str:
    """A function of whole numbers with loops, choices and an array, that ends."""

    def number(depth: int) -> str:
        if depth == 0 or generator.random() < 0.2:
            return generator.choice(["a", "b", "c", str(generator.randint(-9, 9)), f"r[{place()}]"])
        left, other = number(depth - 1), number(depth - 1)
        return generator.choice(
            [
                f"({left} + {other})",
                f"({left} - {other})",
                f"({left} * {other} % 1009)",
                f"({left} // (abs({other}) + 1))",
                f"({left} % (3 - 2 * (abs({other}) % 3)))",
                f"max({left}, {other})",
                f"min({left}, {other}, 5)",
                f"({left} if {test(depth - 1)} else {other})",
                f"({left} ^ {other})",
                f"-{left}",
            ]
        )

    def place() -> str:
        return generator.choice(["a % 8", "-1 - b % 8", "3", "-2", "c % 8"])

    def test(depth: int) -> str:
        left, other, third = number(depth), number(depth), number(depth)
        return generator.choice(
            [f"{left} < {other}", f"{left} <= {other} != {third}", f"not ({left} == {other} or {third} > 0)",
             f"({left} > 2 and {other} // 3 < {third})"]
        )  # fmt: skip

    def block(indent: str, depth: int, looped: bool) -> list[str]:
        lines = []
        for _ in range(generator.randint(1, 3)):
            kind = generator.random()
            if depth and kind < 0.25:
                lines += [f"{indent}if {test(1)}:", *block(indent + "    ", depth - 1, looped)]
                if generator.random() < 0.5:
                    lines += [f"{indent}else:", *block(indent + "    ", depth - 1, looped)]
            elif depth and kind < 0.45:
                lines += [f"{indent}for i{depth} in range({place()}, {place()}, {generator.choice('123')}):"]
                lines += [f"{indent}    c += i{depth}", *block(indent + "    ", depth - 1, True)]
            elif depth and kind < 0.55:
                lines += [
                    f"{indent}n = 0",
                    f"{indent}while n < {generator.randint(1, 6)}:",
                    f"{indent}    n += 1",
                ]
                lines += block(indent + "    ", 0, True)
            elif looped and kind < 0.62:
                lines += [f"{indent}if {test(1)}:", f"{indent}    {generator.choice(['break', 'continue'])}"]
            elif kind < 0.8:
                lines.append(f"{indent}r[{place()}] = {number(2)} % 4096")
            elif kind < 0.9:
                lines.append(f"{indent}a, b = b, {number(2)} % 65521")
            else:
                lines.append(f"{indent}c = {number(2)} % 65521")
        return lines

    body = block("    ", 3, False)
    head = ["@compiled", f"def {name}(a, b, r):", "    c, n = 1, 0", "    i1, i2, i3 = 0, 0, 0"]
    return "\n".join([*head, *body, "    return a, b, c, n, r.copy()", "", ""])


def test_random_kernels_compute_what_python_does(tmp_path: Path) -> None:
    """Functions with nested loops and choices, each run with several arguments."""
    generator, count = random.Random(23), effort(24)
    path = tmp_path / "random_kernels.py"
    names = [f"kernel_{at}" for at in range(count)]
    head = "from tilewright.foundation.compiled import compiled\n\n\n"
    path.write_text(head + "\n".join(random_kernel(generator, name) for name in names))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    for name in names:
        kernel = getattr(module, name)
        for _ in range(4):
            a, b = generator.randint(-20, 20), generator.randint(-20, 20)
            row = [generator.randint(-50, 50) for _ in range(8)]
            own, theirs = np.array(row), np.array(row, dtype=object)
            computed, expected = kernel(a, b, own), kernel.__wrapped__(a, b, theirs)
            assert computed[:4] == expected[:4], name
            assert computed[4].tolist() == expected[4].tolist() == own.tolist(), name


def test_an_interpreter_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread that ends with its interpreter compiles is compiled by one that does not."""
    seen: list[bool] = []

    def compile_(function: CompiledFunction, types: tuple[Type, ...]) -> SimpleNamespace:
        seen.append(threading.current_thread().daemon)
        return SimpleNamespace(types=types)

    def fail(function: CompiledFunction, types: tuple[Type, ...]) -> SimpleNamespace:
        raise KernelTypeError("no such kind")

    def searched(call: Callable[[], object]) -> list[object]:
        answers: list[object] = []

        def search() -> None:
            try:
                answers.append(call())
            except KernelTypeError as error:
                answers.append(str(error))

        thread = threading.Thread(target=search, daemon=True)
        thread.start()
        thread.join()
        return answers

    monkeypatch.setattr(CompiledFunction, "_read", lambda function, types: None)
    monkeypatch.setattr(CompiledFunction, "_compile", compile_)
    made = CompiledFunction(Source(lambda number: number, False, False))
    whole = type_of(3)
    assert searched(lambda: made._version((whole,)).types) == [(whole,)]
    other = CompiledFunction(Source(lambda number: number, False, False))
    assert searched(lambda: other.is_ready((3,))) == [True]
    assert seen == [False, False]
    monkeypatch.setattr(CompiledFunction, "_compile", fail)
    broken = CompiledFunction(Source(lambda number: number, False, False))
    assert searched(lambda: broken._version((whole,))) == ["no such kind"]
