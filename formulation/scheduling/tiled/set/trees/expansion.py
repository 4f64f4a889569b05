"""A tree as a plan of the common kind: atoms, an engine and a step for each, and their transfers.

Every run of a leaf is a group task: one atom per share, on the share's tile.  The children of a T cut follow
each other in steps; those of an S cut run side by side, each ``stage`` subbatches behind, and what begins at
one time by the closed form begins in one step, and a task goes on through the steps that begin before it ends
(`spanning.py`).  A leaf in row stripes has a run for every stripe of a sample (`leaf/stripes.py`).  A share
becomes several atoms, one after the other on its tile, where it does not fit a buffer with its results, or
crosses a run of channels.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.build import build_dag
from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, ROW, inner_run, shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.set.leaf.layers import shares
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import stripe_parts
from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.placement import Grid
from tilewright.formulation.scheduling.tiled.set.trees.spanning import spanned
from tilewright.formulation.scheduling.tiled.set.trees.striped import slot_cycles
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.errors import InputError

MOST_ATOMS = 64
"""Atoms that one share may become along channels, rows or input channels."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a leaf: its begin and end by the closed form, its first sample, and its row stripe."""

    cost: NodeCost
    begin: int
    end: int
    sample: int
    stripe: int = 0


def runs_of(tree: NodeCost, dataflow: DataFlow) -> list[Run]:
    """All runs of all leaves of an evaluated tree, by beginning."""
    runs: list[Run] = []

    def visit(cost: NodeCost, begin: int, sample: int) -> int:
        """Add the leaf runs of one run of a node; return when it ends."""
        node = cost.node
        if isinstance(node, Leaf):
            runs.append(Run(cost, begin, begin + max(1, cost.cycles), sample))
            return begin + max(1, cost.cycles)
        each = node.batch // node.groups
        end = begin
        if node.stripes > 1 and _in_stripes(cost):
            return striped(cost, begin, sample)
        if node.kind == "T":
            for number in range(node.groups):
                for child in cost.children:
                    end = visit(child, end, sample + number * each)
            return end
        slot = max(_length(child) for child in cost.children)
        for child, stage in zip(cost.children, dataflow.stages(node).of, strict=True):
            for number in range(node.groups):
                end = max(end, visit(child, begin + (stage + number) * slot, sample + number * each))
        return end

    def striped(cost: NodeCost, begin: int, sample: int) -> int:
        """Add all row stripes of a cut; return when it ends."""
        stripes, slots = stripe_slots(cost, dataflow)
        for child, slot in zip(cost.children, slots, strict=True):
            assert child.leaf is not None
            for run, (start, turn) in enumerate(zip(slot, itertools.cycle(child.leaf.turns), strict=False)):
                where = sample + run // stripes
                runs.append(Run(child, begin + start, begin + start + max(1, turn), where, run % stripes))
        return max(begin + max(1, cost.cycles), runs[-1].end)

    visit(tree, 0, 0)
    runs.sort(key=lambda run: run.begin)
    return runs


def _in_stripes(cost: NodeCost) -> bool:
    """Whether the leaves of a cut produce results in stripes; a weight update produces all at once."""
    return all(child.leaf is not None and child.leaf.borders for child in cost.children)


def stripe_slots(cost: NodeCost, dataflow: DataFlow) -> tuple[int, list[list[int]]]:
    """The number of row stripes of an evaluated cut, and per leaf the begin of each of its runs."""
    node = cost.node
    assert isinstance(node, Cut)
    turns = [[max(1, turn) for turn in child.leaf.turns] for child in cost.children if child.leaf is not None]
    stripes, runs = node.stripes, node.stripes * node.groups
    if node.kind == "S":
        stages = dataflow.stages(node).of
        starts = list(
            itertools.accumulate((int(slot) for slot in slot_cycles(turns, stages, node.groups)), initial=0)
        )
        return stripes, [starts[stage : stage + runs] for stage in stages]
    order = [turns[layer][run % stripes] for run in range(runs) for layer in range(len(turns))]
    starts = list(itertools.accumulate(order, initial=0))[:-1]
    return stripes, [starts[layer :: len(turns)] for layer in range(len(turns))]


def _length(cost: NodeCost) -> int:
    """Cycles of one run by what its leaves take, as `runs_of` lays them out."""
    node = cost.node
    if isinstance(node, Leaf):
        return max(1, cost.cycles)
    if node.kind == "T":
        return node.groups * sum(_length(child) for child in cost.children)
    return max(1, cost.cycles)


@dataclass(frozen=True, slots=True)
class _Shares:
    """How the shares of a leaf become atoms: borders of shares, and of atoms within them."""

    borders: tuple[Borders, Borders, Borders, Borders]
    tiling: Tiling


def _tiling(unit: Unit, cost: NodeCost, batch: int, finer: tuple[int, int, int]) -> _Shares:
    """The atoms of a leaf.

    Parameters
    ----------
    finer : atoms per share along channels and rows, and parts of the sum over input channels
    """
    assert cost.leaf is not None
    operator = unit.layer.operator
    shape = shape_of(operator)
    size = cost.node.batch
    k, b, _, w = cost.leaf.partition.parts
    samples = tuple(
        dict.fromkeys(run + border for run in range(0, batch, size) for border in shares(size, b))
    )
    cuts = []
    rows = _row_shares(cost, shape.sizes[ROW])
    whole = (shares(shape.sizes[CHANNEL], k), rows, shares(shape.sizes[2], w))
    for axis, spans, more in zip((CHANNEL, ROW, 2), whole, (finer[0], finer[1], 1), strict=True):
        run = inner_run(operator, axis)
        edges: list[int] = []
        for low, high in itertools.pairwise(spans):
            inner = {low + share_end for share_end in shares(high - low, more)}
            for left, right in itertools.pairwise(sorted(inner)):
                edges.append(left)
                if left // run != (right - 1) // run and (left % run or right % run):
                    edges.extend(range(-(-left // run) * run, right, run))
        cuts.append(tuple(sorted({*edges, shape.sizes[axis]})))
    parts = tuple(dict.fromkeys(shares(shape.parts, min(shape.parts, finer[2]))))
    return _Shares((whole[0], samples, whole[1], whole[2]), Tiling(samples, cuts[0], cuts[1], cuts[2], parts))


def _row_shares(cost: NodeCost, rows: int) -> Borders:
    """Borders of the shares of a leaf's rows; in every stripe those of all tiles along rows."""
    assert cost.leaf is not None
    parts = cost.leaf.partition.parts[2]
    return stripe_parts(cost.leaf.borders, parts) if cost.leaf.borders else shares(rows, parts)


def expand(
    problem: TiledProblem, tree: NodeCost, dataflow: DataFlow, grid: Grid, limits: Limits | None = None
) -> tuple[AtomicDag, Plan]:
    """The atoms and the plan of an evaluated tree over the units of a problem.

    Parameters
    ----------
    problem : machine, batch and units, one per layer of the tree in the same order
    tree : its leaves have partitions
    dataflow : stages of the children of S cuts
    grid : engine of every tile
    limits : within which that must be done; by default however long it takes

    Raises
    ------
    InputError : where no division of a share into atoms fits a buffer
    IllegalPlanError : from transfer routing and residency
    LimitReachedError : where limits strike on the way
    """
    units, batch = problem.units, problem.batch
    leafs = {leaf.node.layer: leaf for leaf in tree.walk() if isinstance(leaf.node, Leaf)}
    finer = [(1, 1, 1)] * len(units)
    while True:
        cut = [_tiling(unit, leafs[i], batch, finer[i]) for i, unit in enumerate(units)]
        dag = build_dag(
            units,
            [leaf.tiling for leaf in cut],
            problem.machine.engine,
            batch=batch,
            partial_sums=problem.partial_sums,
            limits=limits,
        )
        over = np.flatnonzero(dag.needs > problem.machine.engine.buffer_bytes)
        if not len(over):
            break
        for unit in {int(leaf) for leaf in dag.unit[over]}:
            finer[unit] = _finer(problem, units[unit], finer[unit])
    engine, step, last = _assign(dag, cut, runs_of(tree, dataflow), leafs, grid)
    plan = complete(dag, problem.machine, engine, step, limits=limits)
    return dag, _lasting(problem, dag, plan, step, last)


def _lasting(problem: TiledProblem, dag: AtomicDag, plan: Plan, step: Int64s, last: Int64s) -> Plan:
    """The plan with tasks that run through several steps, where that is legal and faster."""
    if not (last > step).any():
        return plan
    places = np.zeros(int(step.max()) + 1, dtype=np.int64)
    places[step] = plan.first
    longer = spanned(dag, plan, problem.machine.engines, places[last])
    try:
        faster = problem.evaluate(dag, longer).cycles < problem.evaluate(dag, plan).cycles
    except IllegalPlanError:
        return plan
    return longer if faster else plan


def _finer(problem: TiledProblem, unit: Unit, now: tuple[int, int, int]) -> tuple[int, int, int]:
    """Twice as many atoms per share: along channels where weights weigh, then rows, then input channels."""
    channels, rows, parts = now
    if max(channels, rows) < MOST_ATOMS:
        return (channels * 2, rows, parts) if channels <= rows * 4 else (channels, rows * 2, parts)
    if parts < MOST_ATOMS and shape_of(unit.layer.operator).parts > parts:
        return channels, rows, parts * 2
    raise InputError(problem.machine.name, unit.name, "no division into atoms fits a buffer")


def _assign(
    dag: AtomicDag, cut: list[_Shares], runs: list[Run], leafs: dict[int, NodeCost], grid: Grid
) -> tuple[Int32s, Int64s, Int64s]:
    """Engine and step of every atom, and the last step that begins before it ends by the closed form."""
    engine = np.zeros(dag.tasks, dtype=np.int32)
    tile = np.zeros(dag.tasks, dtype=np.int64)
    within = np.zeros(dag.tasks, dtype=np.int64)
    sample = np.zeros(dag.tasks, dtype=np.int64)
    stripe = np.zeros(dag.tasks, dtype=np.int64)
    for unit, unit_cut in enumerate(cut):
        cost = leafs[unit]
        assert cost.leaf is not None
        partition, size = cost.leaf.partition, cost.node.batch
        first, last = int(dag.base[unit]), int(dag.base[unit + 1])
        tiling = unit_cut.tiling
        axes = (tiling.samples, tiling.channels, tiling.rows, tiling.columns)
        counts = [len(borders) - 1 for borders in axes]
        at = np.indices(counts).reshape(4, -1)
        n, c, h, w = (np.asarray(borders[:-1])[index] for borders, index in zip(axes, at, strict=True))
        low = {"K": c, "B": n % size, "H": h, "W": w}
        sizes = {"K": axes[1][-1], "B": size, "H": axes[2][-1], "W": axes[3][-1]}
        where = np.full(len(c), cost.first, dtype=np.int64)
        for name, parts, steps in zip("KBHW", partition.parts, partition.steps, strict=True):
            edges = _row_shares(cost, sizes["H"]) if name == "H" else shares(sizes[name], parts)
            share = np.searchsorted(np.asarray(edges), low[name], side="right") - 1
            where += steps * (share % parts)
            if name == "H":
                stripe[first:last] = np.repeat(share // parts, int(dag.slots[unit]))
        slots = int(dag.slots[unit])
        tile[first:last] = np.repeat(where, slots)
        sample[first:last] = np.repeat(n // size * size, slots)
        within[first:last] = np.tile(np.arange(slots), len(c))
        engine[first:last] = grid.engine[tile[first:last]]
    return engine, *_steps(dag, tile, sample, stripe, within, runs)


def _steps(
    dag: AtomicDag, tile: Int64s, sample: Int64s, stripe: Int64s, within: Int64s, runs: list[Run]
) -> tuple[Int64s, Int64s]:
    """Steps in the order of the closed form's beginnings; atoms of one share follow each other."""
    begin, end = np.zeros(dag.tasks, dtype=np.float64), np.zeros(dag.tasks, dtype=np.float64)
    for run in runs:
        unit = run.cost.node.layer  # type: ignore[union-attr]
        first, last = int(dag.base[unit]), int(dag.base[unit + 1])
        mine = first + np.flatnonzero((sample[first:last] == run.sample) & (stripe[first:last] == run.stripe))
        order = mine[np.lexsort((mine, within[mine], tile[mine]))]
        change = np.concatenate([[True], tile[order][1:] != tile[order][:-1]])
        place = np.arange(len(order)) - np.maximum.accumulate(np.where(change, np.arange(len(order)), 0))
        most = int(place.max()) + 1
        begin[order] = run.begin + (run.end - run.begin) * place / most
        end[order] = run.begin + (run.end - run.begin) * (place + 1) / most
    moments, step = np.unique(begin, return_inverse=True)
    step = step.astype(np.int64)
    last_steps = np.searchsorted(moments, end - 1e-3, side="left") - 1
    return step, np.maximum(step, last_steps)
