"""Small spaces whose decisions are all costed at once, beside exact integers and the evaluator."""

from __future__ import annotations

import random
from itertools import count, islice
from itertools import product as cartesian

import pytest
from effort import effort
from machines_with_parts import drawn
from uneven_oracle import DIVISORS, LEAST

from tilewright.formulation.effort import Tally
from tilewright.formulation.expression.exact import ExactReader
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.compiled.cuts import EVERYTHING, Cut, cut_at
from tilewright.solvers.mapping.tree.goals import Goal, LeastEnergy
from tilewright.solvers.mapping.tree.nodes import Leaves
from tilewright.solvers.mapping.tree.small_spaces import is_small, take_all
from tilewright.workloads.mapping.layer_text import parse_layer


class Collected(Goal):
    """All that it is handed of what is below a key."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut
        self.taken: list[Leaves] = []

    def cut(self) -> Cut:
        return self._cut

    def take(self, leaves: Leaves) -> None:
        self.taken.append(leaves)

    @property
    def bounds(self) -> list[tuple[float, float, float]]:
        """Energy, cycles and key of each, ascending."""
        return sorted(
            bounds
            for leaves in self.taken
            for bounds in zip(
                leaves.energy.tolist(), leaves.cycles.tolist(), leaves.keys.tolist(), strict=True
            )
        )


def one_by_one(problem: LayerProblem) -> list[tuple[float, float, float]]:
    """Energy, cycles and key of every legal decision, each read by itself."""
    groups, selectors = problem.space.groups, problem.space.selectors
    a, b = problem.objective.key_powers
    listed: list[tuple[float, float, float]] = []
    for rows in cartesian(*(group.rows.tolist() for group in groups)):
        tiles = {
            tile: size
            for group, row in zip(groups, rows, strict=True)
            for tile, size in zip(group.variables, row, strict=True)
        }
        for options in cartesian(*(selector.domain for selector in selectors)):
            reader = ExactReader({**tiles, **dict(zip(selectors, options, strict=True))})
            if all(reader.read(limit.expr) <= limit.bound for limit in problem.limits):
                energy, cycles = (
                    reader.read(root) for root in (problem.statement.energy, problem.statement.cycles)
                )
                listed.append((float(energy), float(cycles), float(energy) ** a * float(cycles) ** b))
    return sorted(listed)


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_all_that_is_legal_and_wanted_is_taken_and_nothing_else(kind: str) -> None:
    """Arrangements of random machines, and mappings of what was taken as the evaluator counts them."""
    draw, tried, chosen = random.Random(3), 0, 0
    problems = (drawn(seed, 12, kind) for seed in count(500))
    for problem in islice(problems, effort(60)):
        part = min(islice(problem.parts(), 1, 9), key=lambda own: own.space.size, default=problem)
        if part.space.size > 500:
            continue
        every, tally = Collected(EVERYTHING), Tally()
        take_all(part, every, tally)
        expected = one_by_one(part)
        assert every.bounds == expected
        assert tally.nodes == part.space.size
        if not expected:
            continue
        tried, chosen = tried + 1, chosen + bool(part.space.selectors)
        middle = expected[len(expected) // 2][2]
        below = Collected(cut_at(below=middle))
        take_all(part, below, Tally())
        assert below.bounds == [bounds for bounds in expected if bounds[2] < middle]
        leaves = draw.choice(every.taken)
        index = draw.randrange(len(leaves))
        evaluation = part.evaluate(leaves.mapping(index))
        assert evaluation.energy * part.statement.energy_scale == leaves.energy[index]
        assert evaluation.cycles == leaves.cycles[index]
    assert tried >= 5
    assert chosen >= 1


def test_a_layer_of_one_iteration_is_a_single_decision() -> None:
    """No dimension has tiles to choose from."""
    layer, engine = parse_layer("gemm:M=1,N=1,K=1")[1], load_engine("nvdla-256")
    problem = layer_problem(layer, engine, parse_objective("energy"), storage="uneven", factors="perfect")
    goal, tally = LeastEnergy(), Tally()
    assert is_small(problem)
    take_all(problem, goal, tally)
    assert tally.nodes == 1
    assert goal.best == ExactReader({}).read(problem.statement.energy)
