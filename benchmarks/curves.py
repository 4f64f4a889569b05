"""What plots show, as plain numbers: cactus curves, performance profiles, gaps, convergence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from tilewright.benchmarks.rows import MISSING, Row
from tilewright.benchmarks.store import FinishedCell
from tilewright.benchmarks.summary import summary
from tilewright.formulation.objective import parse_objective
from tilewright.report.curves import Convergence, Curve, convergence


def method_order(rows: Sequence[Row]) -> list[str]:
    """Methods by their mean gap, the best one first."""
    return [line.group[0] for line in summary(rows, ("method",))]


def cactus(rows: Sequence[Row], reached: Callable[[Row], float | None]) -> list[Curve]:
    """Per method the share of runs that have reached something by a time, over all runs that can be judged.

    Parameters
    ----------
    reached : when a run reached it, in seconds
    """
    curves = []
    for name in method_order(rows):
        counted = [row for row in rows if row.is_method and row.method == name and row.optimum is not None]
        if counted:
            times = [seconds for row in counted if (seconds := reached(row)) is not None]
            curves.append(_cumulated(name, times, len(counted)))
    return curves


def proof_curve(rows: Sequence[Row], name: str = "proof") -> Curve | None:
    """The share of optima that were proven by a time, over all proofs that have ended."""
    counted = [row for row in rows if not row.is_method and row.status != MISSING]
    times = [row.wall_s for row in counted if row.status == "optimal" and row.wall_s is not None]
    return _cumulated(name, times, len(counted)) if times else None


def profile(rows: Sequence[Row], reached: Callable[[Row], float | None]) -> list[Curve]:
    """Performance profiles: the share of problems on which a method took at most x times the fastest's time.

    E. Dolan and J. More, "Benchmarking optimization software with performance profiles", Mathematical
    Programming 91 (2002).  A method's time on a problem is the median over its seeds, where a run that never
    reached it counts as infinite.  Problems that no method solved count as unsolved for all.
    """
    times: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in rows:
        if row.is_method and row.optimum is not None:
            seconds = reached(row)
            by_method = times.setdefault(row.problem, {})
            by_method.setdefault(row.method, []).append(math.inf if seconds is None else max(seconds, 1e-3))
    medians = [
        {name: statistics.median_high(values) for name, values in by_method.items()}
        for by_method in times.values()
    ]
    curves = []
    for name in method_order(rows):
        ratios = [
            by_name[name] / min(by_name.values())
            for by_name in medians
            if name in by_name and by_name[name] < math.inf
        ]
        considered = sum(name in by_name for by_name in medians)
        if considered:
            curves.append(_cumulated(name, ratios, considered, first=1.0))
    return curves


def gaps(rows: Sequence[Row]) -> dict[str, dict[str, list[float]]]:
    """Gaps to the optimum by objective and method, the best method first."""
    order = method_order(rows)
    by_objective: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.is_method and row.gap is not None:
            by_method = by_objective.setdefault(row.objective, {name: [] for name in order})
            by_method[row.method].append(row.gap)
    return {
        objective: {name: some for name, some in by_method.items() if some}
        for objective, by_method in sorted(by_objective.items())
    }


def cell_convergence(name: str, cell: FinishedCell, objective: str) -> Convergence:
    """The course of one run of a store."""
    goal = parse_objective(objective)

    def shown(key: str | None) -> float | None:
        return None if key is None else float(goal.value(Fraction(key)))

    points = ((seconds, shown(value), shown(bound)) for seconds, value, bound, *_ in cell.answer.trace)
    return convergence(name, points, cell.answer.wall_s)


def _cumulated(name: str, values: Iterable[float], whole: int, first: float | None = None) -> Curve:
    xs = sorted(values)
    shares = [(index + 1) / whole for index in range(len(xs))]
    if first is not None and (not xs or xs[0] > first):
        xs, shares = [first, *xs], [0.0, *shares]
    return Curve(name, tuple(xs), tuple(shares))
