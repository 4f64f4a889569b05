"""The compiled loop: it leaves nothing out, however it is cut up, and compares keys exactly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from math import inf

import numpy as np
import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.solvers.mapping.compiled import descent_state
from tilewright.solvers.mapping.compiled.cuts import (
    EVERYTHING,
    Cut,
    cut_at,
    cut_below,
    cut_by_front,
    wanted_by,
)
from tilewright.solvers.mapping.compiled.descent_order import note_split, order_groups
from tilewright.solvers.mapping.compiled.descent_state import Decisions, Stack, decisions_of, new_stack
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tables.stages import Stage
from tilewright.solvers.mapping.tree import best_first, descent
from tilewright.solvers.mapping.tree.descent import Descent
from tilewright.solvers.mapping.tree.goals import Goal, Minimum
from tilewright.solvers.mapping.tree.layout import laid_out
from tilewright.solvers.mapping.tree.nodes import Leaves, Nodes
from tilewright.solvers.mapping.tree.refinement import Refinement
from tilewright.solvers.mapping.tree.tree import Tree

INSTANCES = st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(
    lambda model: instances(model, most=12, largest=2_000)
)
COUNTS = st.one_of(st.integers(0, 50), st.integers(0, 2**53 - 1))


class _All(Goal):
    """Everything."""

    def cut(self) -> Cut:
        return EVERYTHING

    def take(self, leaves: Leaves) -> None:
        raise NotImplementedError


@settings(max_examples=effort(200))
@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=8), st.data())
def test_products_are_compared_exactly(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """A key is wanted where it is less than the goal in whole numbers, for keys of any powers."""
    a, b = data.draw(st.sampled_from([(1, 0), (0, 1), (1, 1), (2, 1), (1, 3), (4, 4)]))
    keys = [energy**a * cycles**b for energy, cycles in pairs]
    near = data.draw(st.sampled_from(keys)) + data.draw(st.integers(-2, 2))
    goal = Fraction(near) + data.draw(st.sampled_from([Fraction(0), Fraction(1, 3)]))
    energy, cycles = np.array(pairs, dtype=np.float64).T
    wanted = wanted_by(cut_below(goal, (a, b)), energy, cycles, energy**a * cycles**b)
    assert wanted.tolist() == [key < goal for key in keys]


@settings(max_examples=effort(100))
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_a_front_wants_what_no_point_beats(points: list[tuple[int, int]]) -> None:
    """What some point is at least as good as in both respects is not wanted, all else is."""
    front = [
        (energy, cycles)
        for energy, cycles in sorted(set(points), key=lambda point: point[1])
        if not any(e <= energy and c <= cycles and (e, c) != (energy, cycles) for e, c in points)
    ]
    cut = cut_by_front([energy for energy, _ in front], [cycles for _, cycles in front])
    energy, cycles = np.array(list(product(range(11), repeat=2)), dtype=np.float64).T
    wanted = wanted_by(cut, energy, cycles, energy * cycles)
    assert wanted.tolist() == [
        not any(e <= own and c <= other for e, c in points) for own, other in zip(energy, cycles, strict=True)
    ]


def test_keys_up_to_a_number_and_below_another() -> None:
    """Both limits count, and infinite keys are wanted where there is none."""
    keys = np.array([1.0, 2.0, 3.0, inf])
    assert wanted_by(cut_at(below=3), keys, keys, keys).tolist() == [True, True, False, False]
    assert wanted_by(cut_at(most=2), keys, keys, keys).tolist() == [True, True, False, False]
    assert wanted_by(EVERYTHING, keys, keys, keys).all()


@settings(max_examples=effort(30))
@given(INSTANCES, st.sampled_from([1, 3, 64]), st.booleans())
def test_nothing_is_left_out(instance: Instance, batch: int, small: bool) -> None:
    """What a descent lists is every combination of rows and choices that breaks no limit, once.

    Also with batches, blocks and pools of a few nodes, so that it stops and goes on everywhere.
    """
    problem = instance.problem().minimising(parse_objective("edp"))
    layout = laid_out(problem, Limits())
    assume(layout.fits)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(descent, "_spare", {})
        if small:
            patched.setattr(descent, "_WORK", 0)
            patched.setattr(descent, "_LEAST_BLOCK", 1)
            patched.setattr(descent.at, "new_stack", partial(descent_state.new_stack, pool=1, parts=2))
        root = Refinement(layout, _All(), Limits()).root({})
        below = Descent(layout, batch)
        below.begin(root, 1)
        listed: Counter[tuple[object, ...]] = Counter()
        while below:
            leaves = below.go_on(_All(), 1)
            for entry in _entries(leaves, problem) if leaves is not None else ():
                listed[entry] += 1
    last = len(layout.stages) - 1
    every: Counter[tuple[object, ...]] = Counter()
    cells = np.array(
        list(product(*(range(len(table.starts[last])) for table in layout.staged))), dtype=np.int64
    ).T
    selectors = [selector for stage in layout.stages for selector in stage.selectors]
    for options in product(*(selector.domain for selector in selectors)):
        chosen = dict(zip(selectors, options, strict=True))
        at = (last,) * len(layout.staged)
        kept, (energy, cycles) = layout.bound_program.bounds(cells, at, chosen)
        nodes = Nodes(cells[:, kept], last, chosen, energy, cycles, energy * cycles)
        every.update(_entries(nodes, problem))
    assert listed == every


def _entries(nodes: Nodes, problem: LayerProblem) -> list[tuple[object, ...]]:
    """Every node by its cells, choices and bounds."""
    chosen = tuple(nodes.chosen[selector] for selector in problem.space.selectors if selector in nodes.chosen)
    rows = zip(nodes.cells.T.tolist(), nodes.energy.tolist(), nodes.cycles.tolist(), strict=True)
    return [(tuple(cells), chosen, energy, cycles) for cells, energy, cycles in rows]


@settings(max_examples=effort(12))
@given(instances("hierarchy", most=24, largest=50_000))
def test_blocks_change_nothing(instance: Instance) -> None:
    """With blocks of a few nodes the answer and the number of nodes are those of large blocks."""
    problem = instance.problem().minimising(parse_objective("edp"))
    whole = solve(problem, "branch", Limits(threads=1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(descent, "_WORK", 0)
        patched.setattr(descent, "_LEAST_BLOCK", 1)
        cut_up = solve(problem, "branch", Limits(threads=1))
    assert (cut_up.status, cut_up.key, cut_up.answer) == (whole.status, whole.key, whole.answer)
    assert cut_up.effort.nodes == whole.effort.nodes


@settings(max_examples=effort(12))
@given(instances("hierarchy", most=24, largest=50_000), st.sampled_from([2, 3]))
def test_threads_prove_the_same(instance: Instance, threads: int) -> None:
    """Descents side by side end in the optimum that enumeration has, and bounds stay below it meanwhile."""
    problem = instance.problem().minimising(parse_objective("edp"))
    oracle = solve(problem, "exhaustive")
    scale = float(problem.key_scale)
    bounds = [0.0]

    def on_bound(least: float) -> None:
        """Of all that is open; what is closed costs as much as the best mapping."""
        bounds.append(min(least, inf if search.key is None else float(search.key) * scale))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(best_first, "_LONG", -1)
        patched.setattr(descent, "_WORK", 0)
        patched.setattr(descent, "_LEAST_BLOCK", 50)
        search = LayerSearch(problem, Limits(threads=threads))
        tree = Tree(search, Minimum(search, "test"))
        assume(not tree.empty)
        tree.begin(on_bound, dive=False)
        assert tree.go_on(on_bound) is None
    assert search.key == oracle.key
    if oracle.key is not None:
        assert oracle.status is Status.OPTIMAL
        assert max(bounds) <= float(oracle.key) * scale * (1 + 1e-12)


def _splitting(groups: int) -> tuple[Decisions, Stack]:
    """One stage that splits some groups, the last one first as long as nothing is known."""
    nothing = decisions_of((), (Stage("nothing", None, (), ()),), (), {}, (1, 0), (True, False))
    decisions = nothing._replace(
        edges_at=np.zeros((1, groups), dtype=np.int64),
        splits=np.arange(groups, dtype=np.int64)[None, ::-1].copy(),
        split_counts=np.array([groups], dtype=np.int64),
        counts=np.zeros((1, 1 << groups, groups, 3), dtype=np.int64),
    )
    return decisions, new_stack(decisions, 0, 1)


@settings(max_examples=effort(25), deadline=None)
@given(st.integers(2, 4), st.data())
def test_groups_are_split_in_the_cheapest_sequence(groups: int, data: st.DataObject) -> None:
    """By what was counted no sequence bounds fewer nodes; now and then another group comes first."""
    decisions, stack = _splitting(groups)
    children = data.draw(st.lists(st.integers(1, 9), min_size=groups << groups, max_size=groups << groups))
    shares = data.draw(st.lists(st.integers(0, 4), min_size=groups << groups, max_size=groups << groups))
    for done, place in product(range(1 << groups), range(groups)):
        made = 100 * children[done * groups + place]
        kept = made * shares[done * groups + place] // 4
        # As an expansion would note it that has split these groups before.
        others = [at for at in range(groups) if done >> at & 1]
        if place not in others:
            sequence = [*others, place, *(at for at in range(groups) if at != place and at not in others)]
            stack.order[:] = [decisions.splits[0, at] for at in sequence]
            note_split(decisions, stack, 0, len(others), 100, made, kept)

    def bounded(sequence: tuple[int, ...]) -> float:
        """Nodes that are bounded for one that is expanded."""
        nodes, total, done = 1.0, 0.0, 0
        for place in sequence:
            split, made, kept = decisions.counts[0, done, place].tolist()
            total += nodes * made / split
            nodes *= kept / split
            done |= 1 << place
        return total

    order_groups(decisions, stack, 0, True)
    place_of = {group: place for place, group in enumerate(decisions.splits[0].tolist())}
    chosen = tuple(place_of[group] for group in stack.order.tolist())
    assert bounded(chosen) == pytest.approx(min(map(bounded, permutations(range(groups)))))
    order_groups(decisions, stack, 0, False)
    assert stack.order.tolist() == decisions.splits[0].tolist()
    first = set()
    for _ in range(16 * groups):
        order_groups(decisions, stack, 0, True)
        assert sorted(stack.order) == [*range(groups)]
        first.add(int(stack.order[0]))
    assert first == {*range(groups)}


def test_what_was_never_tried_is_tried() -> None:
    """Of two groups both come first before the counts decide."""
    decisions, stack = _splitting(2)
    first = []
    for _ in range(3):
        order_groups(decisions, stack, 0, True)
        first.append(int(stack.order[0]))
        few = stack.order[0] == 0
        note_split(decisions, stack, 0, 0, 10, 20, 1 if few else 20)
        note_split(decisions, stack, 0, 1, 1 if few else 20, 2 if few else 40, 1)
    assert first == [1, 0, 0]
