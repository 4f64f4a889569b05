"""ONNX models that stand for more than they are: refused in a line, soon, in little memory."""

from __future__ import annotations

import os
import random
import resource
import time
from pathlib import Path

import onnx
import pytest
from clocks import delay
from effort import effort
from hostile_onnx import amplifiers, chain, changed, constant, made, node, seeds

from tilewright.foundation.errors import BudgetError, InputError
from tilewright.foundation.loading import loading_within
from tilewright.workloads.network import Network
from tilewright.workloads.onnx import budgets, inference, structure
from tilewright.workloads.onnx.importer import load_onnx
from tilewright.workloads.onnx.options import OnnxOptions

MODELS = dict(amplifiers())
SECONDS = 6.0
"""Of the processor, for one model: twice what the longest of them takes."""


def loaded(model: onnx.ModelProto, folder: Path, *, skip: bool = False) -> Network | InputError:
    """What becomes of a model file: a network, or an error of one line that names it."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return read(path, skip=skip)


def read(path: Path, *, skip: bool = False) -> Network | InputError:
    """The same of a file that is there."""
    imported: Network | InputError
    try:
        imported = load_onnx(path, options=OnnxOptions({}, skip))
    except InputError as error:
        imported = error
    told = str(imported)
    assert isinstance(imported, Network) or (told.startswith(f"{path}: ") and "\n" not in told)
    assert isinstance(imported, Network) or len(told) < 2000
    return imported


def used() -> tuple[float, float]:
    """Seconds of the processor, those of ended children included, and megabytes at the most."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system, own.ru_maxrss / 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_small_file_takes_little(name: str, tmp_path: Path) -> None:
    """Whatever it multiplies, a model is imported or refused in seconds, in less than 300 MB more."""
    seconds, memory = used()
    loaded(MODELS[name], tmp_path)
    after_seconds, after_memory = used()
    assert after_seconds - seconds < SECONDS
    assert after_memory - memory < 300


BUDGETS = [
    ("folded concat", "node at_c19 (Concat): computes constants of 1,048,576 elements, expected at most"),
    ("folded wide concat", "computes constants of 250,000,000 elements"),
    ("pieces", "makes a tensor of too many pieces, expected at most 65,536"),
    ("split and concat", "makes a tensor of too many pieces"),
    ("many readers of a long way", "expected at most 1,048,576 moves of data"),
    ("unsqueeze", "node at_c65 (Unsqueeze): has 65 axes, expected at most 64"),
    ("functions", "is called 32 deep"),
    ("wide functions", "node call (F3): expected at most 131,072 nodes in a model"),
    ("recursive functions", "function local:F0: calls itself, expected functions without recursion"),
    ("circular functions of constants", "calls itself"),
    ("expand", "expected axes of at most 2,147,483,647"),
]
"""Models of which something is too much, and what is said."""


@pytest.mark.parametrize(
    ("name", "told", "skip"),
    [
        pytest.param(*case, skip, marks=() if (place + skip) % 2 == 0 else pytest.mark.slow)
        for place, case in enumerate(BUDGETS)
        for skip in (False, True)
    ],
)
def test_budgets_name_what_is_too_much(name: str, told: str, skip: bool, tmp_path: Path) -> None:
    """The node or function and what was expected; nodes over a budget are not left out either."""
    error = loaded(MODELS[name], tmp_path, skip=skip)
    assert isinstance(error, BudgetError)
    assert told in str(error)


def test_a_function_that_would_fill_the_memory_is_imported(tmp_path: Path) -> None:
    """Constants that double with every call are known up to a limit, which no size needs."""
    seconds, memory = used()
    assert isinstance(loaded(MODELS["folding function"], tmp_path), Network)
    after, most = used()
    assert after - seconds < SECONDS
    assert most - memory < 300


@pytest.mark.parametrize("name", ["unsqueeze and squeeze", "transposes", "relus"])
def test_long_chains_take_linear_time(name: str, tmp_path: Path) -> None:
    """Three thousand nodes in a row are one link that knows them all, in less than two seconds."""
    seconds, _ = used()
    network = loaded(MODELS[name], tmp_path)
    assert isinstance(network, Network)
    assert used()[0] - seconds < 2
    assert len(network) == 2
    assert max(len(link.moves) for link in network.links) == (0 if name == "relus" else 3000)


def test_what_is_within_the_budgets_is_imported(tmp_path: Path) -> None:
    """Half of a budget of pieces and of elements is a network."""
    network = loaded(
        made(
            [
                node("Conv", "x w", "c"),
                *chain("Concat", 10, "{0} {0}", axis=1),
                node("GlobalAveragePool", "c10"),
            ]
        ),
        tmp_path,
    )
    assert isinstance(network, Network)
    assert len([link for link in network.links if link.consumer.startswith("at_y")]) == 1024
    folded = [*chain("Concat", 12, "{0} {0}", axis=0), node("Conv", "x w")]
    assert isinstance(loaded(made(folded, constant("c", 1, 2)), tmp_path), Network)


def test_loading_heeds_the_limit_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An inference that would go on is ended with the limit, which the error names."""
    monkeypatch.setattr(budgets, "MOST_NODES", 2**60)
    monkeypatch.setattr(budgets, "MOST_CALLS", 100)
    began = time.monotonic()
    with loading_within(0.4):
        error = loaded(MODELS["functions of constants"], tmp_path)
    assert "longer to read than the time limit of 0.4 s" in str(error)
    assert time.monotonic() - began < 0.4 + delay()
    monkeypatch.setattr(inference, "SECONDS", 0.5)
    assert "longer than 0.5 s" in str(loaded(MODELS["functions of constants"], tmp_path))


def test_where_no_process_can_be_started_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shapes are not inferred without bounds instead."""

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(inference.subprocess, "Popen", refuse)
    error = loaded(made([node("Relu", "x", "y")]), tmp_path)
    assert "shapes cannot be inferred: no process can be started: " in str(error)


def test_a_file_of_empty_messages_is_refused_unparsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten million bytes of nothing would be a gigabyte; the shipped models are far below the limit."""
    path = tmp_path / "empty.onnx"
    nodes = b"\x0a\x00" * 5_000_000
    path.write_bytes(b"\x3a\x80\xad\xe2\x04" + nodes)
    with pytest.raises(BudgetError, match="expected at most 1,048,576 parts"):
        load_onnx(path)
    path.write_bytes(b"\x3a\xff\xff\xff\x7f" + nodes)
    with pytest.raises(InputError, match="truncated"):
        load_onnx(path)
    monkeypatch.setattr(structure, "SMALL", 0)
    monkeypatch.setattr(structure, "MOST_PARTS", 2**16)
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for shipped in sorted(folder.glob("*.onnx")):
        structure.check_structure(shipped.read_bytes(), str(shipped))


def test_every_end_is_told(tmp_path: Path) -> None:
    """A model cut off at any byte is refused, or whole without what is missing."""
    content = seeds()[0].SerializeToString()
    path = tmp_path / "cut.onnx"
    for end in range(0, len(content), max(1, len(content) // effort(60))):
        path.write_bytes(content[:end])
        read(path)


@pytest.mark.parametrize("seed", range(4))
def test_anything_in_any_field(seed: int, tmp_path: Path) -> None:
    """Models with fields set, dropped, repeated or moved are imported or refused in one line."""
    draw = random.Random(seed)
    for _ in range(effort(8)):
        loaded(changed(draw.choice(seeds()), draw), tmp_path, skip=draw.random() < 0.5)
