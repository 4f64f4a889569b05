"""Tensors that enter the array: what is told of their moves, and both parts with it, mapping by mapping."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice

import numpy as np
import pytest
from effort import effort
from machines_with_parts import all_decisions, decisions, having, leakage, least
from strided_instances import FACTORS, overlapping_operator, strided_operator
from uneven_oracle import DIVISORS, LEAST, Oracle

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.parts.entering import SHARE, Entering, entering, least_moved
from tilewright.formulation.mapping.parts.outer_levels import outside as outside_loops
from tilewright.formulation.mapping.parts.segment_cycles import apart_from_fills, filled
from tilewright.formulation.mapping.parts.segment_parts import (
    around,
    has_parts,
    inner_arrangements,
    inside_part,
    knowing,
    leaks_outside,
    near_arrangements,
    outside_part,
    storages,
    stores_near,
    within,
)
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.arrays import Bools, Floats
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.arrangements import arrangement_trees
from tilewright.solvers.mapping.arrangements.outside_front import OutsideFront, found_outside
from tilewright.solvers.mapping.arrangements.part_searches import PartSearches
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.arrangements.survivors import EnergyInside, Survivors, where_they_meet
from tilewright.solvers.mapping.compiled.cuts import cut_at, wanted_by
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree.goals import BAND
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role

EVERY = frozenset(Role)
DENSE = (
    "O[i,k] += A[i,j] * B[j,k]",
    "O[i,k,l] += A[i+l,j] * B[j,k]",
    "O[i,l] += A[i,j,k] * B[k,j,l]",
    "O[i,k] += A[i+l,j] * B[j,k,l]",
)


def layer(draw: random.Random, most: int) -> Operator:
    """Mostly one whose weights have loops of their own; with strides, or axes that loops share, sometimes."""
    if draw.random() < 0.3:
        return draw.choice([strided_operator, overlapping_operator])(draw, min(60, most))
    while True:
        line = draw.choice(DENSE)
        names = [name for name in "ijkl" if name in line]
        bounds = {name: draw.choice([1, 2, 3, 4, 5, 6, 7]) for name in names}
        like = dict(zip(names, draw.sample("KCPR", len(names)), strict=True))
        operator = nest(line, bounds=bounds, like=like)
        if 3 < operator.iterations <= most:
            return operator


def machine(draw: random.Random) -> Engine:
    """One or two near levels that some tensor passes, an array, and one or two small levels behind it."""

    def level(name: str, room: int | None, keeps: frozenset[Role], **fields: object) -> MemoryLevel:
        port, side = draw.choice([None, Fraction(1, 4), Fraction(1)]), draw.choice(["read", "read", "shared"])
        energies = Fraction(draw.randint(1, 60)), Fraction(draw.randint(1, 60))
        return MemoryLevel(
            *(name, room, *energies),
            **{f"{side}_bandwidth": port, "double_buffered": draw.random() < 0.3, "keeps": keeps, **fields},  # type: ignore[arg-type]
        )

    past = frozenset({draw.choice([Role.WEIGHT, Role.INPUT])})
    some = [EVERY - past, EVERY - past, frozenset({draw.choice(sorted(EVERY - past))})]
    axes = [ArrayAxis("x", draw.choice([2, 3, 4]), draw.choice([None, frozenset("KC"), frozenset("PR")]))]
    axes += [ArrayAxis("y", 2)] * (draw.random() < 0.3)
    fan = Fanout(tuple(axes), Fraction(1), draw.random() < 0.7, draw.random() < 0.7)
    near = [
        level(f"L{index}", draw.choice([6, 12, 20, 40]), draw.choice(some), may_bypass=frozenset())
        for index in range(draw.choice([1, 1, 1, 2]))
    ]
    if draw.random() < 0.2:  # it may pass, and need not
        near[-1] = replace(near[-1], keeps=near[-1].keeps | past, may_bypass=past)
    near[-1] = replace(near[-1], fanout=fan)
    rooms = {role: draw.choice([1, 2, 3, 4, 6, 9]) for role in Role}
    parts = rooms if draw.random() < 0.6 else {}
    slides = draw.random() < 0.4
    inner = [level("R0", sum(rooms.values()), EVERY, partitions=parts, sliding_window=slides)]
    if draw.random() < 0.2:
        last = draw.choice(sorted(Role))
        inner = [replace(inner[0], keeps=EVERY - {last}, partitions={}), level("R1", 2, frozenset({last}))]
    dram = replace(level("DRAM", None, EVERY), double_buffered=False)
    if draw.random() < 0.4:  # its port decides the cycles
        dram = replace(dram, read_bandwidth=None, shared_bandwidth=Fraction(1, 50))
    levels = (dram, *near, *inner)
    return Engine("past", "hierarchy", 16, Fraction(1), Fraction(500), levels, leakage=leakage(draw))


def drawn(seed: int, kind: str, most: int = 400) -> LayerProblem:
    """A random problem of so many iterations at most."""
    draw = random.Random(f"passing {seed}")
    objective = parse_objective(draw.choice(["energy", "edp"]))
    operator, engine = layer(draw, most), machine(draw)
    return layer_problem(operator, engine, objective, factors=FACTORS[kind], storage="uneven")


def settled(problem: LayerProblem) -> list[LayerProblem]:
    """Its machines on which something passes near levels that store something."""
    machines = storages(problem) if has_parts(problem) else ()
    return [own for own in machines if stores_near(own) and entering(own)]


Counted = tuple[str, str, int, int, int]
"""Level, tensor, and its reads, fills and updates there."""


def last_near(problem: LayerProblem) -> int:
    """The level around the first array."""
    return next(index for index, level in enumerate(problem.engine.levels) if level.fanout)


def spent_outside(problem: LayerProblem, counts: Sequence[Counted]) -> Fraction:
    """Energy of moving tensors from and to near levels, pJ."""
    engine, roles = problem.engine, {tensor.name: tensor.role for tensor in problem.operator.tensors}
    near = {level.name for level in engine.levels[1 : last_near(problem) + 1]}
    stored = {tensor for level, tensor, *_ in counts if level in near}
    energy = Fraction(0)
    for name, tensor, reads, fills, updates in counts:
        level, role = engine.level(name), roles[tensor]
        if name in near:
            energy += level.write_energy_of(role) * fills
        elif level is engine.levels[0] and tensor in stored:
            energy += level.read_energy_of(role) * reads + level.write_energy_of(role) * (fills + updates)
    return energy


def compare(problem: LayerProblem, draw: random.Random, tries: int) -> Iterator[str]:
    """Compare random mappings of one arrangement with what is told of them; what each is an example of."""
    inner, near = draw.choice([*inner_arrangements(problem)]), draw.choice([*near_arrangements(problem)])
    whole = problem.arranged((*near, *inner))
    entered = entering(problem, draw.choice([SHARE, SHARE, Fraction(0)]))
    inside, outside = inside_part(problem, inner, entered), outside_part(problem, near, 0, entered)
    scale, stated = problem.statement.energy_scale, whole.statement
    known = knowing(whole, 0, entered)
    loops = outside_loops(whole.space.nest, last_near(problem))
    told = {own: least_moved(problem, loops, own) for own in entered}
    # Statements are compared: where loops of one iteration make one count more than the mapping costs,
    # another order or arrangement has that cost.
    for values in islice(decisions(whole, draw, tries), 12):
        counts = [
            (
                row.level,
                row.tensor,
                *(evaluate(count, values) for count in (row.reads, row.fills, row.updates)),
            )
            for row in stated.traffic
        ]
        share = Fraction(0)
        for own in entered:
            source = problem.engine.levels[own.source].name
            moved = next(row[2::2] for row in counts if row[:2] == (source, own.tensor.name))
            fewest = [evaluate(count, values) for count in told[own]]
            assert all(least <= count for least, count in zip(fewest, moved, strict=True))
            share += Fraction(evaluate(own.energy(*moved, own.share), values), scale)
            once = own.tensor.footprint(problem.operator.bounds)
            yield "more than once" if max(fewest) > once else "once"
            yield "exact" if fewest == [*moved] else "less"
        spent, energy = spent_outside(problem, counts), Fraction(evaluate(stated.energy, values), scale)
        if leaks_outside(problem):
            spent += problem.engine.leak * evaluate(stated.cycles, values)
        # A part over the mapping's own tiles: in one order it costs no more.
        near_part = having(outside, around(near), whole, around(near), values)
        assert least(near_part)[0] <= (spent + share) * scale
        assert least(near_part)[1] <= evaluate(stated.cycles, values)
        inner_part = having(
            filled(inside, problem, entered), within(inside.space), whole, within(whole.space), values
        )
        assert least(inner_part)[0] <= (energy - spent - share) * scale
        assert least(inner_part)[1] <= evaluate(stated.cycles, values)
        assert evaluate(known.statement.energy, values) == energy * scale
        decided = (
            all_decisions(problem, near, near_part, around(near), entered),
            all_decisions(problem, inner, inner_part, within(inside.space), entered),
        )
        assert all(decided)
        given = EnergyInside(0, decided[1:], entered).given(near_part)  # type: ignore[arg-type]
        told_inside = replace(near_part, statement=replace(near_part.statement, energy=given))
        assert least(told_inside)[0] <= (energy - spent - share) * scale
        costs = energy * scale, evaluate(stated.cycles, values)
        yield from met(problem, entered, decided, costs)
        yield "a mapping"


def met(
    problem: LayerProblem,
    entered: Sequence[Entering],
    parts: tuple[Survivors, Survivors],
    costs: tuple[Fraction, int],
) -> Iterator[str]:
    """Where both parts of a mapping meet, they cost no more than it; what it is an example of.

    Parameters
    ----------
    parts : the decisions of both that have its tiles
    costs : its energy (scaled) and its cycles
    """
    known: list[tuple[float, float]] = []

    def wanted(energy: Floats, cycles: Floats) -> Bools:
        cheap = np.asarray((energy * (1 - BAND) <= float(costs[0])) & (cycles <= costs[1]))
        known.append((energy[cheap].max(initial=0), cycles[cheap].max(initial=0)))
        return cheap

    assert where_they_meet(*parts, problem, entered, wanted) is not None
    energy, cycles = known[-1]  # of pairs of decisions
    yield "all energy" if energy >= float(costs[0]) * (1 - 2 * BAND) else "some energy"
    yield "all cycles" if cycles == costs[1] else "some cycles"


def judged(kind: str, start: int, number: int, tries: int = 200) -> Counter[str]:
    """What random mappings are examples of, so many at least."""
    seen: Counter[str] = Counter()
    for seed in count(start):
        draw = random.Random(seed)
        for problem in settled(drawn(seed, kind)):
            seen.update(compare(problem, draw, tries))
        if seen["a mapping"] >= number:
            return seen
    raise AssertionError


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_parts_with_shares_cost_no_more_than_random_mappings(kind: str) -> None:
    """What passes near levels is read as often at least, and each part costs no more, mapping by mapping."""
    seen = judged(kind, 0, effort(100))
    assert seen["more than once"] * 8 >= seen["a mapping"]
    assert seen["exact"] * 5 >= seen["a mapping"]


def ported(draw: random.Random) -> Engine:
    """A machine whose outermost level hands over slowly; any roles pass the near levels, or may."""
    engine = machine(draw)
    rates = {
        name: Fraction(1, draw.choice([1, 2, 4, 8])) if draw.random() < 0.6 else None
        for name in ("read_bandwidth", "write_bandwidth", "shared_bandwidth")
    }
    near = range(1, len(engine.levels) - 1)
    roles = frozenset(role for role in Role if draw.random() < 0.5)
    loose = frozenset(role for role in roles if draw.random() < 0.3)
    levels = [replace(engine.levels[0], **rates), *engine.levels[1:]]  # type: ignore[arg-type]
    for index in near:
        levels[index] = replace(levels[index], keeps=roles, may_bypass=loose)
        if levels[index].fanout is not None:
            break
    return replace(engine, levels=tuple(levels))


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_the_inside_waits_no_longer_than_random_mappings(kind: str) -> None:
    """Ports of the outermost level count inside: what passes the near levels, and all else once."""
    seen: Counter[str] = Counter()
    for seed in count():
        draw = random.Random(f"ports {seed}")
        operator, engine = layer(draw, 300), ported(draw)
        problem = layer_problem(
            operator, engine, parse_objective("edp"), factors=FACTORS[kind], storage="uneven"
        )
        for own in storages(problem) if has_parts(problem) else ():
            inner, near = draw.choice([*inner_arrangements(own)]), draw.choice([*near_arrangements(own)])
            whole, part = own.arranged((*near, *inner)), filled(inside_part(own, inner), own)
            for values in islice(decisions(whole, draw, 100), 8):
                inside = having(part, within(part.space), whole, within(whole.space), values)
                cycles, waits = evaluate(whole.statement.cycles, values), least(inside)[1]
                assert waits <= cycles
                seen["a mapping"] += 1
                seen["exact by a port"] += waits == cycles > evaluate(whole.space.nest.steps(), values)
        if seen["a mapping"] >= effort(200):
            break
    assert seen["exact by a port"] * 40 >= seen["a mapping"]


@pytest.mark.parametrize(("read", "write"), [(Fraction(1, 2), Fraction(8)), (Fraction(8), Fraction(1, 2))])
def test_either_part_waits_for_the_outermost_port_no_longer_than_a_mapping(
    read: Fraction, write: Fraction
) -> None:
    """Tiles of near stores skip what a stride skips, and what passes near levels takes one port alone."""
    operator = nest("O[k,p] += W[k,c] * I[c,5*p]", bounds={"k": 4, "p": 4, "c": 2})
    near_roles = frozenset({Role.INPUT, Role.OUTPUT})
    levels = (
        MemoryLevel("DRAM", None, Fraction(9), Fraction(9), read_bandwidth=read, write_bandwidth=write),
        MemoryLevel(
            "GLB",
            90,
            Fraction(2),
            Fraction(2),
            double_buffered=True,
            keeps=near_roles,
            fanout=Fanout((ArrayAxis("x", 2),), Fraction(0)),
        ),
        MemoryLevel("RF", 6, Fraction(1), Fraction(1), double_buffered=True),
    )
    engine = Engine("ported", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    problem = layer_problem(operator, engine, parse_objective("edp"), factors="perfect", storage="uneven")
    entered, draw, exact = entering(problem), random.Random(3), [0, 0]
    assert entered
    assert not entered[0].source
    for near, inner in zip(near_arrangements(problem), inner_arrangements(problem), strict=False):
        whole = problem.arranged((*near, *inner))
        parts = (
            (filled(inside_part(problem, inner, entered), problem, entered), within, within(whole.space)),
            (outside_part(problem, near, 0, entered), lambda _space, own=near: around(own), around(near)),
        )
        for values in islice(decisions(whole, draw, 400), 30):
            cycles = evaluate(whole.statement.cycles, values)
            for place, (part, edges, at) in enumerate(parts):
                waits = least(having(part, edges(part.space), whole, at, values))[1]
                assert waits <= cycles
                exact[place] += waits == cycles
    assert any(exact)


def with_front(problem: LayerProblem, draw: random.Random) -> Counter[str]:
    """Compare random mappings of all arrangements with the front; what they are examples of."""
    seen: Counter[str] = Counter()
    entered = entering(problem)
    nears, inners = [*near_arrangements(problem)], [*inner_arrangements(problem)]
    outside = [outside_part(problem, near, 0, entered) for near in nears]
    sampled = []
    for _ in range(4):
        near, inner = draw.choice(nears), draw.choice(inners)
        whole = problem.arranged((*near, *inner))
        part = filled(inside_part(problem, inner, entered), problem, entered)
        for values in islice(decisions(whole, draw, 60), 4):
            energy, cycles = (
                evaluate(whole.statement.energy, values),
                evaluate(whole.statement.cycles, values),
            )
            sampled.append(
                (energy * cycles, inner, having(part, within(part.space), whole, within(whole.space), values))
            )
    if not sampled:
        return seen
    below = float(draw.choice(sampled)[0]) * draw.choice([1.001, 1.5, 4])
    search = LayerSearch(problem, Limits())
    points = found_outside(PartSearches(search, PartTables()), outside, below, 0, 0)
    for key, inner, part in sampled:
        if key >= below:
            continue
        assert points is not None
        front = OutsideFront(*points, (1, 1), 0, 0, 0)
        apart = replace(part, statement=apart_from_fills(part.statement))
        both = [all_decisions(problem, inner, own, within(own.space), entered) for own in (part, apart)]
        costs, others = (np.sort(own.decisions.costs, axis=1) for own in both if own and own.decisions)
        assert np.allclose(costs, others, rtol=1e-12)
        # One of the decisions with the mapping's tiles costs no more than it, and is not left out.
        spent, waits = both[1].decisions.costs[[0, 2]]  # type: ignore[union-attr]
        assert wanted_by(front.cut(cut_at(below)), spent, waits, spent * waits).any()
        seen["a mapping"] += 1
        seen["several points"] += len(points[0]) > 1
        seen["fills"] += points[1].min() > 0
    return seen


def buffered(draw: random.Random, engine: Engine) -> Engine:
    """The machine with near levels that are double-buffered mostly."""
    last = next(index for index, level in enumerate(engine.levels) if level.fanout is not None)
    levels = [
        replace(level, double_buffered=draw.random() < 0.8) if 0 < index <= last else level
        for index, level in enumerate(engine.levels)
    ]
    return replace(engine, levels=tuple(levels))


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_the_front_bounds_random_mappings(kind: str) -> None:
    """A mapping of interest costs no less than what is inside with some point of the front."""
    seen: Counter[str] = Counter()
    for seed in count():
        draw = random.Random(f"front {seed}")
        operator, engine = layer(draw, 200), buffered(draw, ported(draw))
        problem = layer_problem(
            operator, engine, parse_objective("edp"), factors=FACTORS[kind], storage="uneven"
        )
        for own in storages(problem) if has_parts(problem) else ():
            if stores_near(own):
                seen.update(with_front(own, draw))
        if seen["a mapping"] >= effort(200):
            break
    assert seen["several points"] * 8 >= seen["a mapping"]
    assert seen["fills"] * 8 >= seen["a mapping"]


def claims(kind: str, seeds: Iterable[int], number: int) -> int:
    """How many of so many problems have a mapping; claims are those of enumeration."""
    problems = (
        problem
        for seed in seeds
        if len(last_axes(problem := drawn(seed, kind, 8))) == 1
        and settled(problem)
        and len([*islice(problem.arrangements(), 13)]) < 13
    )
    optima = 0
    for problem in islice(problems, number):
        powers = problem.objective.key_powers
        wanted = Oracle(problem.operator, problem.engine, kind).least(powers)
        result = solve(problem, "branch", Limits(seconds=120))
        assert result.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL), result.message
        assert (result.key, result.bound) == (wanted, wanted)
        optima += wanted is not None
    return optima


def last_axes(problem: LayerProblem) -> tuple[ArrayAxis, ...]:
    """The axes of the first array."""
    fan = problem.engine.levels[last_near(problem)].fanout
    assert fan is not None
    return fan.axes


@pytest.fixture(params=["in steps", "at once"])
def bounded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts bound all problems, in many steps of the cutoff or listed at once."""
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    if request.param == "in steps":
        monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: True)
        monkeypatch.setattr(arrangement_trees, "_QUICK", 0)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_claims_are_those_of_enumeration(kind: str) -> None:
    """Optimum and bound of small problems in which something passes near levels."""
    assert claims(kind, count(), effort(10)) >= effort(10) // 2


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_claims_at_length(kind: str, part: int) -> None:
    """The same on some hundred more."""
    assert claims(kind, count(10_000 * (part + 1)), 40) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_parts_with_shares_at_length(kind: str, part: int) -> None:
    """Some thousand more mappings."""
    assert judged(kind, 10_000 * (part + 1), 400)["more than once"] > 40
