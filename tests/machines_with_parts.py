"""Small machines whose near levels and arrays bound each other's parts, and random decisions of problems."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian

from uneven_oracle import DIVISORS, LEAST

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.nests.arrangements import Arrangement
from tilewright.formulation.mapping.parts.entering import Entering
from tilewright.formulation.mapping.parts.segment_parts import charged
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.boundary_tiles import restricted, tiles_at
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds
from tilewright.solvers.mapping.arrangements.survivors import Survivors
from tilewright.solvers.mapping.compiled.cuts import EVERYTHING, Cut
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.nodes import Leaves
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm

Values = dict[Variable, int]
FACTORS = {DIVISORS: "perfect", LEAST: "imperfect"}


def leakage(draw: random.Random) -> dict[str, Fraction]:
    """Of an engine: nothing, less than an access takes in a cycle, or more than that."""
    leak = draw.choice([None, None, Fraction(1, 4), Fraction(5, 2), Fraction(40)])
    return {} if leak is None else {"PE": leak}


def machine(draw: random.Random) -> Engine:
    """DRAM, one or two near buffers, an array, registers; some levels may be bypassed."""

    def level(name: str, most: int, energies: int, **fields: object) -> MemoryLevel:
        port = draw.choice([None, Fraction(1, 2), Fraction(2)])
        return MemoryLevel(
            name,
            draw.randint(4, most),
            Fraction(draw.randint(1, energies)),
            Fraction(draw.randint(1, energies)),
            read_bandwidth=port,
            write_bandwidth=port,
            double_buffered=draw.random() < 0.5,
            **fields,  # type: ignore[arg-type]
        )

    fan = Fanout((ArrayAxis("x", draw.choice([2, 4])),), Fraction(0), multicast=draw.random() < 0.7)
    dram = replace(level("DRAM", 9, 60), capacity=None, double_buffered=False)
    keeps = draw.choice([frozenset(Role), frozenset({Role.WEIGHT}), frozenset({Role.INPUT, Role.OUTPUT})])
    inner = level("RF", 6, 3, keeps=keeps)
    if draw.random() < 0.5:
        return Engine(
            "one",
            "hierarchy",
            16,
            Fraction(1),
            Fraction(500),
            (dram, level("BUF", 14, 12, fanout=fan), inner),
            leakage=leakage(draw),
        )
    loose = draw.choice([frozenset({Role.WEIGHT}), frozenset({Role.INPUT}), frozenset[Role]()])
    kept = frozenset({Role.WEIGHT, Role.INPUT})
    far = level("L2", 16, 12, keeps=loose or kept, may_bypass=loose)
    near = level("L1", 10, 6, keeps=frozenset({Role.INPUT, Role.OUTPUT}), fanout=fan)
    levels = (dram, far, near, inner)
    return Engine("two", "hierarchy", 16, Fraction(1), Fraction(500), levels, leakage=leakage(draw))


def drawn(seed: int, most: int, kind: str = DIVISORS) -> LayerProblem:
    """A product of small matrices on a random machine."""
    draw = random.Random(seed)
    while True:
        sizes = [draw.choice([1, 2, 2, 3, 4] if kind == DIVISORS else [1, 1, 2, 3, 5, 7]) for _ in range(3)]
        if sizes[0] * sizes[1] * sizes[2] <= most:
            break
    objective = draw.choice(["energy", "energy", "edp", "cycles"])
    engine = machine(draw)
    m, n, k = sizes
    return layer_problem(
        gemm(m=m, n=n, k=k), engine, parse_objective(objective), factors=FACTORS[kind], storage="uneven"
    )


def past_a_loose_level(draw: random.Random, kind: str) -> LayerProblem:
    """A product on a machine whose near level stores what it likes, with a register file for each tensor."""

    def level(name: str, room: int | None, keeps: frozenset[Role], **fields: object) -> MemoryLevel:
        port = draw.choice([None, Fraction(1, 2), Fraction(2)])
        buffered = room is not None and draw.random() < 0.5
        energies = Fraction(draw.randint(1, 60)), Fraction(draw.randint(1, 60))
        return MemoryLevel(
            *(name, room, *energies),
            **{"read_bandwidth": port, "double_buffered": buffered, "keeps": keeps, **fields},  # type: ignore[arg-type]
        )

    every = frozenset(Role)
    fan = Fanout((ArrayAxis("x", 4),), Fraction(1), multicast=draw.random() < 0.7)
    levels = (
        level("DRAM", None, every),
        level("BUF", 20, every, may_bypass=every, fanout=fan),
        level("W", 6, frozenset({Role.WEIGHT})),
        level("IO", 9, every - {Role.WEIGHT}),
    )
    operator = gemm(m=draw.choice([2, 4, 6]), n=draw.choice([2, 3]), k=draw.choice([3, 5, 8]))
    engine = Engine("loose", "hierarchy", 16, Fraction(1), Fraction(500), levels, leakage=leakage(draw))
    edp = parse_objective("edp")
    return layer_problem(operator, engine, edp, factors=FACTORS[kind], storage="uneven")


class Everything(Goal):
    """All decisions there are."""

    both = True

    def cut(self) -> Cut:
        return EVERYTHING

    def take(self, leaves: Leaves) -> None:
        raise AssertionError("listed, not taken")


def all_decisions(
    machine: LayerProblem, slots: Arrangement, part: LayerProblem, edges: range, entered: Sequence[Entering]
) -> Survivors | None:
    """All decisions of a part, if there are any.

    Parameters
    ----------
    machine : the problem
    slots, edges : the points of storage in the part, and the boundaries that it decides
    entered : tensors of the problem that pass near levels
    """
    bounds = SegmentBounds(LayerSearch(machine, Limits()), Everything(), machine, False, PartTables())
    bounds._entered = tuple(entered)
    listed = bounds._survivors(slots, charged(part, parse_objective("edp"), 0), edges, 0, 10**9)
    return listed[0] if listed else None


def sampled(part: LayerProblem, draw: random.Random) -> list[int]:
    """What a problem says of some decisions: energy, cycles, counts and limits."""
    assignment = {selector: draw.choice(selector.domain) for selector in part.space.selectors}
    for group in part.space.groups:
        row = group.rows[draw.randrange(len(group))]
        assignment |= dict(zip(group.variables, row.tolist(), strict=True))
    stated = part.statement
    counted = [moved for row in stated.traffic for moved in (row.reads, row.fills, row.updates, row.tile)]
    exprs = [stated.energy, stated.cycles, *counted, *(limit.expr for limit in part.limits)]
    return [evaluate(expr, assignment) for expr in exprs]


def decisions(problem: LayerProblem, draw: random.Random, tries: int) -> Iterator[Values]:
    """Random legal decisions of one arrangement."""
    space = problem.space
    for _ in range(tries if all(len(group) for group in space.groups) else 0):
        values: Values = {selector: draw.choice(selector.domain) for selector in space.selectors}
        for group in space.groups:
            row = group.rows[draw.randrange(len(group))]
            values |= dict(zip(group.variables, row.tolist(), strict=True))
        if all(evaluate(limit.expr, values) <= limit.bound for limit in problem.limits):
            yield values


def having(part: LayerProblem, edges: range, whole: LayerProblem, at: range, values: Values) -> LayerProblem:
    """A part over the tiles that a mapping has at some boundaries of the whole."""
    tiles = {}
    for group in whole.space.groups:
        row = group.rows[(group.rows == [values[variable] for variable in group.variables]).all(axis=1)]
        tiles[group.name] = tiles_at(whole.space, at, group.having(row[:1]))
    return replace(part, space=restricted(part.space, edges, tiles))


def all_values(part: LayerProblem) -> Iterator[Values]:
    """All legal decisions of a small part."""
    space = part.space
    for rows in cartesian(*(group.rows.tolist() for group in space.groups)):
        tiles = {
            variable: size
            for group, row in zip(space.groups, rows, strict=True)
            for variable, size in zip(group.variables, row, strict=True)
        }
        for chosen in cartesian(*(selector.domain for selector in space.selectors)):
            values = {**tiles, **dict(zip(space.selectors, chosen, strict=True))}
            if all(evaluate(limit.expr, values) <= limit.bound for limit in part.limits):
                yield values


def least(part: LayerProblem) -> tuple[int, int]:
    """Least energy (scaled) and least cycles of all in a small part that is legal."""
    stated = part.statement.energy, part.statement.cycles
    costs = [[evaluate(expr, values) for expr in stated] for values in all_values(part)]
    return min(energy for energy, _ in costs), min(cycles for _, cycles in costs)
