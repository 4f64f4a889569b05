"""Plots: the numbers behind them by hand, and every kind drawn into every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.benchmarks.curves import cactus, cell_convergence, gaps, profile, proof_curve
from tilewright.benchmarks.plots.registry import PLOTS, draw_to
from tilewright.benchmarks.rows import Filters, Row, read_rows
from tilewright.benchmarks.store import Store
from tilewright.foundation.errors import InputError
from tilewright.report.curves import Curve
from tilewright.report.records.mapping.breakdown import energy_parts
from tilewright.report.records.mapping.document import MetricsRecord

pytest.importorskip("matplotlib")

ONE = Filters(layers=("000*",), archs=("tpu-edge",), objectives=("edp",))
HEADS = {".png": b"\x89PNG\r\n", ".pdf": b"%PDF-", ".svg": b"<?xml"}


def _row(layer: str, method: str, seconds: float | None, gap: float = 0.0, seed: int = 0) -> Row:
    return Row(
        suite="s",
        layer=layer,
        shape="",
        count=1,
        arch="a",
        objective="edp",
        part="method",
        method=method,
        seed=seed,
        status="feasible",
        value=1.0,
        optimum=1.0,
        gap=gap,
        seconds_1=seconds,
        wall_s=1.0,
        time_limit_s=10.0,
        primal_integral_s=0.0,
    )


ROWS = [
    _row("x", "fast", 1.0),
    _row("y", "fast", 3.0),
    _row("z", "fast", None, 0.5),
    _row("x", "slow", 4.0, 0.1),
    _row("y", "slow", 3.0, 0.3),
    _row("z", "slow", 5.0, 0.4),
]


def test_cactus_by_hand() -> None:
    """The share of runs that were there by each time; the best method by its mean gap comes first."""
    assert cactus(ROWS, lambda row: row.seconds_1) == [
        Curve("fast", (1.0, 3.0), (1 / 3, 2 / 3)),
        Curve("slow", (3.0, 4.0, 5.0), (1 / 3, 2 / 3, 1.0)),
    ]


def test_profile_by_hand() -> None:
    """Ratios to the fastest: fast 1 and 1 and never, slow 4 and 1 and 1."""
    fast, slow = profile(ROWS, lambda row: row.seconds_1)
    assert (fast.xs, fast.ys) == ((1.0, 1.0), (1 / 3, 2 / 3))
    assert (slow.xs, slow.ys) == ((1.0, 1.0, 4.0), (1 / 3, 2 / 3, 1.0))


def test_profile_takes_the_median_over_seeds() -> None:
    """Two of three seeds solve a problem: the method solved it, at its slower time."""
    rows = [_row("x", "m", t, seed=seed) for seed, t in enumerate((2.0, None, 6.0))] + [_row("x", "n", 1.0)]
    curves = {curve.name: curve.xs for curve in profile(rows, lambda row: row.seconds_1)}
    assert curves == {"m": (1.0, 6.0), "n": (1.0,)}


def test_gaps_by_hand() -> None:
    """By objective and method, in the order of rows."""
    assert gaps(ROWS) == {"edp": {"fast": [0.0, 0.0, 0.5], "slow": [0.1, 0.3, 0.4]}}


def test_convergence_is_the_trace(filled_store: Path) -> None:
    """Values fall and bounds rise, and where the optimum is proven they meet."""
    with Store(filled_store) as store:
        cells = {cell.key: cell for cell in store.cells()}
        for row in read_rows(store):
            run = cell_convergence("x", cells[row.key], row.objective)
            assert list(run.value.ys) == sorted(run.value.ys, reverse=True)
            assert list(run.bound.ys) == sorted(run.bound.ys)
            assert run.value.ys[-1] == row.value
            if row.status == "optimal":
                assert run.bound.ys[-1] == row.value
        assert proof_curve(read_rows(store)) is not None


def test_energy_parts_add_up(filled_store: Path) -> None:
    """Levels are divided by tensor, and all parts add up to the energy of the mapping."""
    with Store(filled_store) as store:
        for cell in store.cells():
            metrics = MetricsRecord.model_validate(cell.answer.metrics)
            problem = store.problem(cell.problem)
            engine = problem.arch.build("store")
            parts = energy_parts(metrics, engine, problem.operator.build("store"))
            assert sum(part.picojoules for part in parts) == pytest.approx(metrics.energy_pj)
            levels = {level.name for level in engine.levels} & set(metrics.energy_by_component_pj)
            assert all(part.tensor for part in parts if part.component in levels)


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [*((kind, ".svg") for kind in PLOTS), *((next(iter(PLOTS)), end) for end in HEADS if end != ".svg")],
)
def test_every_kind_in_every_format(filled_store: Path, tmp_path: Path, kind: str, suffix: str) -> None:
    """A file of that format is written, and nothing else."""
    with Store(filled_store) as store:
        draw_to(tmp_path / f"plot{suffix}", kind, store, ONE.apply(read_rows(store)))
    (path,) = tmp_path.iterdir()
    assert path.read_bytes().startswith(HEADS[suffix])
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("kind", ["cactus", "profile", "gaps"])
def test_nothing_to_compare(filled_store: Path, tmp_path: Path, kind: str) -> None:
    """Runs without a proven optimum cannot be shown against it."""
    with Store(filled_store) as store:
        rows = [row for row in read_rows(store) if not row.is_method]
        with pytest.raises(InputError, match="no run has a proven optimum"):
            draw_to(tmp_path / "plot.png", kind, store, rows)
    assert list(tmp_path.iterdir()) == []
