"""When every task of a plan runs, what buffers hold and links carry meanwhile: arrays for tables and plots.

Times are cycles, as the evaluator's elastic steps have them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.evaluator import Evaluation, occupancy
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.arrays import Floats, Int64s, distinct
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology

IDLE = -1


@dataclass(frozen=True, eq=False)
class Timeline:
    """Tasks in time.

    Parameters
    ----------
    start, end : cycles per task: it computes in between
    engine, layer : of every task
    cycles : of the whole plan
    """

    start: Floats
    end: Floats
    engine: Int64s
    layer: Int64s
    cycles: int
    engines: int

    @property
    def busy(self) -> Floats:
        """Per engine, the part of the time in which it computes."""
        spent = np.bincount(self.engine, weights=self.end - self.start, minlength=self.engines)
        return spent / max(1, self.cycles)

    def spans(self) -> tuple[Int64s, Int64s, Floats, Floats, Int64s]:
        """Tasks of one layer that follow each other on an engine without a pause, put together.

        Returns
        -------
        engine, layer, start, end and number of tasks of every span, by engine and start
        """
        order = np.lexsort((self.start, self.engine))
        engine, layer = self.engine[order], self.layer[order]
        start, end = self.start[order], self.end[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (np.diff(engine) != 0) | (np.diff(layer) != 0) | (start[1:] - end[:-1] > 1e-6)
        at = np.flatnonzero(first)
        last = np.concatenate([at[1:], [len(order)]]) - 1
        return engine[at], layer[at], start[at], end[last], last - at + 1

    def raster(self, columns: int) -> Int64s:
        """Per engine and equal part of the time the layer that runs longest in it, or `IDLE` where less runs.

        Returns
        -------
        Array of shape (engines, columns)
        """
        units, longest, busy = self.shares(columns)
        units[longest < 1 - busy] = IDLE
        return units

    def shares(self, columns: int) -> tuple[Int64s, Floats, Floats]:
        """Per engine and equal part of the time the layer that runs longest in it, and shares of that part.

        Returns
        -------
        Arrays of shape (engines, columns): the layer or `IDLE`, the share in which it runs, and the share in
        which any layer does
        """
        engine, layer, start, end, _ = self.spans()
        width = max(1, self.cycles) / columns
        best = np.zeros((self.engines, columns))
        busy = np.zeros((self.engines, columns))
        units = np.full((self.engines, columns), IDLE, dtype=np.int64)
        spent: dict[tuple[int, int, int], float] = {}
        for e, unit, low, high in zip(engine.tolist(), layer.tolist(), start, end, strict=True):
            first, last = int(low / width), min(columns - 1, int((high - 1e-9) / width))
            for column in range(first, last + 1):
                part = min(high, (column + 1) * width) - max(low, column * width)
                busy[e, column] += part
                total = spent.get((e, column, unit), 0.0) + part
                spent[e, column, unit] = total
                if total > best[e, column]:
                    best[e, column], units[e, column] = total, unit
        return units, best / width, np.minimum(1.0, busy / width)

    def layer_spans(self, layers: int) -> tuple[Floats, Floats, Int64s, Floats]:
        """Per layer: first cycle, last cycle, engines that take part, and cycles of all its tasks."""
        low: Floats = np.full(layers, np.inf)
        high: Floats = np.zeros(layers)
        np.minimum.at(low, self.layer, self.start)
        np.maximum.at(high, self.layer, self.end)
        pairs = distinct(self.layer * self.engines + self.engine)
        engines: Int64s = np.bincount(pairs // self.engines, minlength=layers).astype(np.int64)
        spent = np.bincount(self.layer, weights=self.end - self.start, minlength=layers)
        work = spent.astype(np.float64)
        low[np.isinf(low)] = 0.0
        return low, high, engines, work


def timeline(answer: AtomicPlan, machine: TiledMachine, evaluation: Evaluation) -> Timeline:
    """When every task of an evaluated plan runs."""
    plan, dag = answer.plan, answer.dag
    start = evaluation.step_start[plan.first] + evaluation.late
    return Timeline(
        start,
        start + dag.cycles,
        plan.engine.astype(np.int64),
        dag.unit.astype(np.int64),
        evaluation.cycles,
        machine.engines,
    )


def held_bytes(
    answer: AtomicPlan, machine: TiledMachine, evaluation: Evaluation, columns: int
) -> tuple[Floats, Int64s]:
    """What buffers hold at equally spaced moments.

    Parameters
    ----------
    answer : a plan with the graph of its tasks
    machine : whose buffers are looked at
    evaluation : of this plan, which has the cycle of every step
    columns : number of moments

    Returns
    -------
    cycles, shape (columns,), and bytes, shape (engines, columns): the most of all steps around a moment
    """
    held = occupancy(answer.dag, machine, answer.plan)
    borders = np.linspace(0, max(1, evaluation.cycles), columns + 1)
    step = np.clip(
        np.searchsorted(evaluation.step_start, borders, side="right") - 1, 0, answer.plan.steps - 1
    )
    most = np.empty((machine.engines, columns), dtype=np.int64)
    for column in range(columns):
        low, high = int(step[column]), int(step[column + 1])
        most[:, column] = held[:, low : high + 1].max(axis=1)
    return (borders[:-1] + borders[1:]) / 2, most


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """One link: its name, the bytes over it, and the part of the time that it needs for them."""

    name: str
    bytes: float
    busy: float


def link_loads(machine: TiledMachine, evaluation: Evaluation) -> list[LinkLoad]:
    """All links that carry something, the busiest first; DRAM stands among them."""
    net = topology(machine)
    cycles = max(1, evaluation.cycles)
    loads = [
        LinkLoad(name, float(size), float(size / rate / cycles))
        for name, size, rate in zip(net.names, evaluation.link_bytes, net.rates, strict=False)
        if size > 0
    ]
    traffic = evaluation.dram_read_bytes + evaluation.dram_write_bytes
    loads.append(LinkLoad("DRAM", float(traffic), traffic / machine.dram_rate / cycles))
    return sorted(loads, key=lambda load: -load.busy)


_ROUTER = re.compile(r"link \((\d+),(\d+)\)->\((\d+),(\d+)\)")
_LINK_BEGIN, _LINK_OFFSET = 0.24, 0.1
"""Of the way between two routers, where a drawn link begins, and how far beside the middle it runs."""


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link between routers as a line on the grid; the one back runs on the other side of the middle."""

    load: LinkLoad
    start: tuple[float, float]
    end: tuple[float, float]

    @property
    def middle(self) -> tuple[float, float]:
        return (self.start[0] + self.end[0]) / 2, (self.start[1] + self.end[1]) / 2


def drawn_links(machine: TiledMachine, evaluation: Evaluation) -> list[DrawnLink]:
    """Loaded links between routers of a grid; none on an H-tree, whose nodes are no positions.

    A link that closes a torus ends half-way, outside.
    """
    lines: list[DrawnLink] = []
    for load in link_loads(machine, evaluation):
        match = _ROUTER.fullmatch(load.name)
        if match is None or machine.topology == "htree":
            continue
        x, y, to_x, to_y = map(int, match.groups())
        dx, dy = to_x - x, to_y - y
        reach = 1 - _LINK_BEGIN
        if abs(dx) + abs(dy) > 1:
            dx, dy, reach = (dx < 0) - (dx > 0), (dy < 0) - (dy > 0), 0.5
        side = -dy * _LINK_OFFSET, dx * _LINK_OFFSET
        start = x + _LINK_BEGIN * dx + side[0], y + _LINK_BEGIN * dy + side[1]
        lines.append(DrawnLink(load, start, (x + reach * dx + side[0], y + reach * dy + side[1])))
    return lines
