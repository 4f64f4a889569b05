"""Small parts of the command line: texts of flags, exit codes, progress."""

from __future__ import annotations

import io
import time
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import pytest

from tilewright.cli.exits import Exit, exit_of_layers
from tilewright.cli.options import parse_duration, parse_gap, parse_jobs, parse_threads
from tilewright.cli.terminal import progress as progress_module
from tilewright.cli.terminal.lines import ProgressItem
from tilewright.cli.terminal.progress import PlainProgress, make_progress
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, TracePoint
from tilewright.foundation.errors import InputError
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.selection import select_layers

EDP = parse_objective("edp")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60),
        ("90s", 90),
        ("5m", 300),
        ("1h", 3600),
        ("1h30m", 5400),
        ("0.5", 0.5),
        ("250ms", 0.25),
        ("2 min", 120),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """Times come in seconds, minutes and hours, alone or together."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "x", "5x", "-1", "0", "1h30", "m", "1e400"])
def test_bad_durations(text: str) -> None:
    """Anything else names the flag."""
    with pytest.raises(InputError, match="--time-limit"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "gap"), [("0", 0), ("0.01", 0.01), ("1%", 0.01), ("1e-3", 0.001), (".5", 0.5)]
)
def test_gaps(text: str, gap: float) -> None:
    """Gaps come as fractions or in percent."""
    assert parse_gap(text) == pytest.approx(gap)


def test_threads() -> None:
    """By default there is a thread for every core."""
    assert parse_threads(None) >= 1
    assert parse_threads(3) == 3


def test_jobs_are_no_more_than_cores() -> None:
    """Processes beyond that would take each other's time."""
    assert parse_jobs(1) == 1
    assert parse_jobs(None) == parse_jobs(1000) == parse_threads(None)


OK, BAD = ("optimal", True), ("unknown", False)


@pytest.mark.parametrize(
    ("layers", "interrupted", "required", "code"),
    [
        ([OK, OK], False, True, Exit.OK),
        ([OK, ("feasible", True)], False, False, Exit.OK),
        ([OK, ("feasible", True)], False, True, Exit.NOT_OPTIMAL),
        ([OK, BAD], False, False, Exit.LIMIT),
        ([("infeasible", False), BAD], False, False, Exit.INFEASIBLE),
        ([("error", False), ("infeasible", False)], False, False, Exit.ERROR),
        ([("error", True)], False, False, Exit.OK),
        ([OK, ("interrupted", False)], True, False, Exit.INTERRUPTED),
        ([("interrupted", True)], True, True, Exit.NOT_OPTIMAL),
        ([("interrupted", False)], True, False, Exit.INTERRUPTED),
        ([], True, False, Exit.INTERRUPTED),
    ],
)
def test_exit_codes(layers: list[tuple[str, bool]], interrupted: bool, required: bool, code: Exit) -> None:
    """The worst layer decides; an interrupted run is a success where every layer has a solution."""
    assert (
        exit_of_layers(layers, interrupted=interrupted, missing=not layers, require_optimal=required) is code
    )


def point(
    seconds: float,
    value: int | None,
    bound: int | None,
    improved: bool = False,
    origin: Origin = Origin.EXACT,
) -> TracePoint:
    def key(number: int | None) -> Fraction | None:
        return None if number is None else Fraction(number)

    return TracePoint(seconds, key(value), key(bound), "branch", improved, origin)


def test_plain_lines_have_marks_and_few_bounds() -> None:
    """Stars for exact solvers, h for heuristics, and not every move of the bound alone."""
    stream = io.StringIO()
    plain = PlainProgress(stream, EDP)
    plain.task(ProgressItem(1, 2, "conv1", "conv2d K8"))
    plain.point(point(0.1, 4 * 10**12, None, improved=True, origin=Origin.HEURISTIC))
    plain.point(point(0.2, 2 * 10**12, 10**12, improved=True))
    for bound in range(100):
        plain.point(point(0.3, 2 * 10**12, 10**12 + bound))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[1/2] conv1: conv2d K8"
    assert [line[0] for line in lines[1:]] == ["h", "*"]
    assert lines[2].split() == ["*", "0.20s", "2.000", "J·cycle", "1.000", "J·cycle", "50.00", "%", "branch"]


def test_verbose_prints_every_bound() -> None:
    """With -v every point is a line."""
    stream = io.StringIO()
    plain = PlainProgress(stream, EDP, every=True)
    for bound in range(10):
        plain.point(point(0.3, None, 1 + bound))
    assert len(stream.getvalue().splitlines()) == 10


def test_live_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the search is drawn in place, and finished layers and notes stay."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    assert progress_module._is_live()
    with ExitStack() as stack:
        (live,) = make_progress(EDP, stack, quiet=False, verbose=False, log=None)
        live.head("net on engine")
        live.task(ProgressItem(1, 1, "conv1", "conv2d K8"))
        live.point(point(0.2, 2 * 10**12, 10**12, improved=True))
        live.point(point(0.3, 2 * 10**12, 11 * 10**11))
        live.point(point(0.4, 2 * 10**12, 12 * 10**11))
        live.phase("Pareto front")
        live.note("something")
        time.sleep(0.3)  # the display is redrawn eight times a second
    text = terminal.getvalue()
    for part in ("net on engine", "conv1", "2.000 J·cycle", "Pareto front", "tilewright: something"):
        assert part in text


def test_log_that_cannot_be_written(tmp_path: Path) -> None:
    """A log in a folder that does not exist is bad input."""
    with ExitStack() as stack, pytest.raises(InputError, match="cannot be written"):
        make_progress(EDP, stack, quiet=True, verbose=False, log=tmp_path / "none" / "log")


def test_jobs_keep_the_order_of_the_network() -> None:
    """Distinct operators come in the order of their first layer, with all their names."""
    network = resolve_model("onnx:resnet50")
    jobs = select_layers(network, [], all_operators=False)
    assert (len(jobs), sum(len(job.names) for job in jobs)) == (24, 54)
    assert jobs[0].names[0] == "conv1"
    every = select_layers(network, [], all_operators=True)
    assert sum(len(job.names) for job in every) == len(network)
