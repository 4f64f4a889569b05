"""Widths per role, shared ports and energies per role, counted in bits by a walk through the nest."""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec

import pytest
from brute import every_mapping
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators
from particulars import particular
from simulator import cycles, energy, overfull, simulate

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Storage, Temporal
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import gemm

HIERARCHY = cost_model("hierarchy")
SOLVERS = ("exhaustive", "branch", "cpsat", *(("highs",) if find_spec("pulp") else ()))


@st.composite
def machines(draw: st.DrawFn, levels: int | None = None) -> Engine:
    """Machines that set roles and ports apart, with little room."""
    return particular(draw(hierarchies(levels)), lambda options: draw(st.sampled_from(options)))


@settings(max_examples=effort(30))
@given(st.data())
def test_bits_are_held_and_moved_as_in_a_walk_through_the_nest(data: st.DataObject) -> None:
    """Energy, cycles and which rooms overflow, of even and uneven, perfect and imperfect mappings."""
    operator = data.draw(operators(kinds=("conv", "gemm", "matmul", "pool", "elementwise"), most=32))
    engine = data.draw(machines())
    mapping = data.draw(mappings(operator, engine, data.draw(st.booleans()), data.draw(st.booleans())))
    evaluation, walked = (
        evaluate_mapping(operator, engine, HIERARCHY, mapping),
        simulate(operator, engine, mapping),
    )
    assert (evaluation.energy, evaluation.cycles) == (
        energy(engine, operator, walked),
        cycles(engine, operator, walked),
    )
    words = [line.partition(":")[0].partition(" in units")[0] for line in evaluation.violations]
    full = [line.removeprefix("capacity of ") for line in words if line.startswith("capacity of ")]
    assert sorted(line.replace(" for ", " ") for line in full) == sorted(overfull(engine, operator, walked))


def least(operator: Operator, engine: Engine, perfect: bool, powers: tuple[int, int]) -> Fraction | None:
    """The least energy^a * cycles^b of all even mappings in every loop order, by walking through each."""
    best: Fraction | None = None
    sizes = {axis.name: axis.size for level in engine.levels if level.fanout for axis in level.fanout.axes}
    for mapping in every_mapping(operator, engine, perfect):
        walked = simulate(operator, engine, mapping)
        used = dict.fromkeys(sizes, 1)
        tile = dict(operator.bounds)
        for node in mapping.nodes:
            if not isinstance(node, Storage):
                if not isinstance(node, Temporal):
                    used[node.axis] *= -(-tile[node.dim] // node.tile)
                tile[node.dim] = node.tile
        if overfull(engine, operator, walked) or any(used[axis] > size for axis, size in sizes.items()):
            continue
        a, b = powers
        key = energy(engine, operator, walked) ** a * cycles(engine, operator, walked) ** b
        best = key if best is None or key < best else best
    return best


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
def test_every_solver_finds_the_least_of_all_mappings(objective: str) -> None:
    """Enumeration, branch and bound, CP-SAT and MIP: what walks through all mappings find."""
    powers = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1)}[objective]

    @settings(max_examples=effort(2))
    @given(machines(levels=2), st.booleans(), st.permutations([3, 2, 1]))
    def check(engine: Engine, perfect: bool, sizes: list[int]) -> None:
        operator = gemm(m=sizes[0], n=sizes[1], k=sizes[2])
        wanted = least(operator, engine, perfect, powers)
        factors = "perfect" if perfect else "imperfect"
        problem = layer_problem(operator, engine, parse_objective(objective), factors=factors)
        for name in SOLVERS:
            result = solve(problem, name)
            assert result.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL), name
            assert (result.key, result.bound) == (wanted, wanted), name

    check()
