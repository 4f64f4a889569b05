"""The latency model of Gemmini's runs: fitted, cross-validated, and judged within layers.

    python -m studies.gemmini gemmini_rtl.json fit        fit on all rows, write constants.yaml
    python -m studies.gemmini gemmini_rtl.json validate   leave layers out in turn, print ranks and regrets
    python -m studies.gemmini gemmini_rtl.json optima     prove the best of each layer, beside all runs
    python -m studies.gemmini gemmini_rtl.json plots docs/images

The file has rows as ``docs/gemmini.md`` describes them (``rtl_train``, ``rtl_test``).  Constants minimise the
robust (soft L1) error of the logarithm of the cycles and are never negative; their spread is that of the
fits that leave one layer out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.gemmini.latency import CONSTANTS, Constants, cycles_of_run
from tilewright.formulation.mapping.gemmini.row import DIMS, Row, read_row
from tilewright.formulation.mapping.gemmini.run import Run, run_of
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.arrays import Floats
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.gemmini_auto import library_mapping
from tilewright.report.exchange.mapping.gemmini_read_row import machine_of
from tilewright.solvers.mapping.solve import solve

START = Constants(
    start=1000,
    product_call=126,
    convolution_call=255,
    row=1,
    byte=0.125,
    missed=5,
    instruction=1,
    beside=0.1,
    empty=5e6,
)
SOFT = 0.15
"""Errors of the logarithm above this count linearly."""
NEAR = 1.05
"""Times the optimum's cycles: mappings up to these count as near it."""
FEWEST = 10
"""Mappings of a layer that is judged."""


@dataclass(frozen=True)
class Measured:
    """Rows of one kind: what each run does, its measured cycles, and its layer."""

    runs: tuple[Run, ...]
    cycles: Floats
    layers: tuple[tuple[int, ...], ...]
    suspicious: tuple[bool, ...]

    @classmethod
    def read(cls, rows: Sequence[dict[str, str]]) -> Measured:
        read = [read_row(row) for row in rows]
        return cls(
            tuple(run_of(row) for row in read),
            np.array([float(row["target.gemmini_cycle"]) for row in rows]),
            tuple((*(row.bounds[dim] for dim in DIMS), row.stride) for row in read),
            tuple(max(row.spatial.values()) > 16 or bool(run_of(row).empty) or _oblong(row) for row in read),
        )

    def among(self, kept: Sequence[bool]) -> Measured:
        """Only some rows."""
        index = [i for i, keep in enumerate(kept) if keep]
        return Measured(
            tuple(self.runs[i] for i in index),
            self.cycles[index],
            tuple(self.layers[i] for i in index),
            tuple(self.suspicious[i] for i in index),
        )


def _oblong(row: Row) -> bool:
    """Whether the run's picture is another than the layer's: the library's are square."""
    return not row.is_product and row.bounds["P"] != row.bounds["Q"]


@dataclass(frozen=True)
class Judged:
    """A layer's mappings by predicted and by measured cycles."""

    layer: tuple[int, ...]
    mappings: int
    regret: float
    rank: float


def fit(rows: Measured, start: Constants = START, rounds: int = 60) -> Constants:
    """Levenberg-Marquardt on the logarithms of constants and cycles, with soft-L1 weights."""
    x = np.log(list(start.named.values()))
    table = _table(rows.runs)
    wanted = np.log(rows.cycles)

    def errors(at: Floats) -> Floats:
        return np.log(_predicted(table, np.exp(at))) - wanted

    def loss(residuals: Floats) -> float:
        return float(np.sum(np.sqrt(1 + (residuals / SOFT) ** 2) - 1))

    damping, now = 1e-2, errors(x)
    for _ in range(rounds):
        slopes = np.column_stack([(errors(x + step) - now) / 1e-5 for step in 1e-5 * np.eye(len(x))])
        weight = 1 / np.sqrt(1 + (now / SOFT) ** 2)
        left = slopes.T @ (weight[:, None] * slopes)
        right = -slopes.T @ (weight * now)
        for _ in range(12):
            step = np.linalg.solve(left + damping * (np.diag(np.diag(left)) + 1e-9 * np.eye(len(x))), right)
            tried = np.clip(x + np.clip(step, -1, 1), -12, 20)
            after = errors(tried)
            if loss(after) < loss(now):
                x, now, damping = tried, after, max(damping / 5, 1e-9)
                break
            damping *= 4
        else:
            break
    return Constants(*(float(value) for value in np.exp(x)))


def _table(runs: Sequence[Run]) -> Floats:
    return np.array([[float(getattr(run, field.name)) for field in fields(Run)] for run in runs]).T


def _predicted(table: Floats, x: Floats) -> Floats:
    """As ``cycles_of_run``, of all runs at once."""
    product, calls, rows, size, missed, instructions, streamed, empty = table
    start, of_product, of_convolution, row, byte, miss, instruction, beside, padding = x
    busy = np.array(
        [
            np.where(product > 0, of_product, of_convolution) * calls,
            row * rows + byte * size + miss * missed,
            streamed + instruction * instructions,
        ]
    )
    slowest = busy.max(axis=0)
    result: Floats = start + slowest + beside * (busy.sum(axis=0) - slowest) + padding * empty
    return result


def judge(rows: Measured, predicted: Floats, fewest: int = FEWEST) -> list[Judged]:
    """Rank and regret of every layer with enough mappings."""
    judged = []
    for layer in dict.fromkeys(rows.layers):
        own = np.array([i for i, other in enumerate(rows.layers) if other == layer])
        if len(own) >= fewest:
            best = own[np.argmin(predicted[own])]
            regret = float(rows.cycles[best] / rows.cycles[own].min())
            judged.append(Judged(layer, len(own), regret, _rank(predicted[own], rows.cycles[own])))
    return judged


def _rank(left: Floats, right: Floats) -> float:
    """Spearman's coefficient; equal values share their mean rank."""

    def ranks(values: Floats) -> Floats:
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[place]

    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return 0.0  # nothing is told apart
    return float(np.corrcoef(ranks(left), ranks(right))[0, 1])


def left_out(rows: Measured) -> tuple[Floats, list[Constants]]:
    """Cycles of every row as predicted by the fit that never saw its layer, and those fits."""
    predicted, fits = np.zeros(len(rows.cycles)), []
    for layer in dict.fromkeys(rows.layers):
        own = [other == layer for other in rows.layers]
        constants = fit(rows.among([not is_own for is_own in own]))
        fits.append(constants)
        for i in np.flatnonzero(own):
            predicted[i] = cycles_of_run(rows.runs[i], constants)
    return predicted, fits


def plain(rows: Measured) -> Floats:
    """The model before calibration: calls free, a cycle per streamed row, 8 bytes a cycle, no misses."""
    return np.array([max(run.streamed, run.bytes / 8) for run in rows.runs])


def summary(judged: Sequence[Judged]) -> str:
    """Median and worst regret, median rank."""
    regrets = [each.regret for each in judged]
    ranks = [each.rank for each in judged]
    return (
        f"{len(judged)} layers: regret median {np.median(regrets):.3f}, worst {max(regrets):.2f}; "
        f"Spearman median {np.median(ranks):.3f}, least {min(ranks):.2f}"
    )


def constants_text(constants: Constants, fits: Sequence[Constants], rows: int) -> str:
    """The file that the package reads."""
    lines = [
        f"# Fitted by `python -m studies.gemmini gemmini_rtl.json fit` to {rows} runs; cycles, with",
        "# the least and the most of the fits that leave one layer out.",
        "constants:",
    ]
    for name, value in constants.named.items():
        spread = [getattr(each, name) for each in fits]
        lines.append(f"  {name}: {{cycles: {value:.5g}, least: {min(spread):.5g}, most: {max(spread):.5g}}}")
    return "\n".join(lines) + "\n"


def optima(rows: Sequence[dict[str, str]], seconds: float = 60) -> str:
    """Proven optima of all layers on all machines beside the same model's cycles of every measured mapping.

    ``rtl_train`` rows are taken for the default machine of 16 x 16, whatever their label says.

    Raises
    ------
    AssertionError : where a mapping inside the space takes fewer cycles than the proven optimum
    """
    asked: dict[tuple[str, tuple[int, ...]], list[Row]] = {}
    cycles: dict[int, float] = {}
    for data in rows:
        row = read_row(data)
        cycles[id(row)] = float(data["target.gemmini_cycle"])
        machine = "gemmini" if row.array == 128 else machine_of(row)
        asked.setdefault((machine, (*row.bounds.values(), row.stride)), []).append(row)
    broken: Counter[str] = Counter()
    held = proven = 0
    nearest: list[float] = []
    for (machine, _), own in asked.items():
        engine = load_engine(machine)
        problem = layer_problem(own[0].operator, engine, parse_objective("cycles"))
        result = solve(problem, limits=Limits(seconds=seconds))
        proven += result.status is Status.OPTIMAL
        mappings = [row.mapping() for row in own] + [library_mapping(own[0].operator, engine)]
        near: list[float] = []
        for index, mapping in enumerate(mappings):
            evaluation = problem.evaluate(mapping)
            legal = not evaluation.violations
            if legal and index < len(own) and result.key and evaluation.cycles <= NEAR * float(result.key):
                near.append(cycles[id(own[index])])
            if evaluation.violations:
                broken[evaluation.violations[0].split(":")[0]] += 1
                continue
            outside = problem.outside(mapping)
            if outside:
                broken["outside the space of least tiles"] += 1
            else:
                held += 1
            assert result.bound is None or evaluation.cycles >= result.bound or outside, (machine, mapping)
        if near and len(own) >= FEWEST:
            nearest.append(min(near) / min(cycles[id(row)] for row in own))
    lines = [f"{proven} of {len(asked)} problems proven; {held} mappings at or above their bound"]
    if nearest:
        lines.append(
            f"{len(nearest)} layers have a legal run within {NEAR - 1:.0%} of the optimum; "
            f"the best takes {np.median(nearest):.3f} times the least RTL cycles of its layer in the "
            f"median, {max(nearest):.2f} at worst"
        )
    return "\n".join([*lines, *(f"{count} break: {rule}" for rule, count in broken.most_common())])


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("what", choices=("fit", "validate", "optima", "plots"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    asked = parser.parse_args(arguments)
    data = json.loads(asked.file.read_text("utf-8"))
    rows = Measured.read(data["rtl_train"])
    if asked.what == "fit":
        CONSTANTS.write_text(constants_text(fit(rows), left_out(rows)[1], len(rows.cycles)), "utf-8")
        print(CONSTANTS.read_text("utf-8"), end="")
        return
    if asked.what == "optima":
        print(optima([*data["rtl_train"], *data["rtl_test"]]))
        return
    predicted, _ = left_out(rows)
    if asked.what == "plots":
        from studies.gemmini_plots import draw

        draw(rows, plain(rows), predicted, judge(rows, predicted), asked.folder)
        return
    kept = [not bad for bad in rows.suspicious]
    print("before calibration:    ", summary(judge(rows, plain(rows))))
    print("layers left out:       ", summary(judge(rows, predicted)))
    print(f"without {len(kept) - sum(kept)} suspicious:", summary(judge(rows.among(kept), predicted[kept])))
    print("| layer N K C P Q R S, stride | mappings | regret | Spearman |\n|---|---:|---:|---:|")
    for each in judge(rows, predicted):
        print(f"| {' '.join(map(str, each.layer))} | {each.mappings} | {each.regret:.3f} | {each.rank:.3f} |")


if __name__ == "__main__":
    main()
