"""Demands on innermost loops and on storage, against every mapping and against machines that say the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from brute import every_mapping

from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Dma, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, gemm, pool2d

FREE = frozenset({Role.WEIGHT, Role.INPUT})
LEVELS = (
    MemoryLevel("DRAM", None, Fraction(10), Fraction(9), read_bandwidth=Fraction(2)),
    MemoryLevel(
        "SPM",
        20,
        Fraction(2),
        Fraction(3),
        may_bypass=FREE,
        sliding_window=True,
        fanout=Fanout((ArrayAxis("x", 2),)),
    ),
    MemoryLevel("RF", 5, Fraction(1), Fraction(1)),
)
ENGINE = Engine("small", "hierarchy", 16, Fraction(1), Fraction(500), LEVELS)
DMA = Engine(
    "dma",
    "dmazerunner",
    16,
    Fraction(1),
    Fraction(500),
    (LEVELS[0], replace(LEVELS[1], capacity=24, may_bypass=frozenset()), replace(LEVELS[2], capacity=6)),
    Dma(Fraction(20), Fraction(1), Fraction(1, 2)),
)
CONV = conv2d(k=2, c=2, p=4, q=1, r=2, s=1)
GEMM = gemm(m=4, n=2, k=2)
OUTER = nest("O[a,b] += A[a] * B[b]", bounds={"a": 4, "b": 2})
"""``b`` and ``a`` each leave one operand alone."""
TWICE = nest("O[a,b] += A[a,c] * B[b,c]", bounds={"a": 2, "b": 2, "c": 4})


def innermost_loops(mapping: Mapping) -> dict[str, str]:
    """Per level, the dimension of its last loop in time."""
    innermost_loops: dict[str, str] = {}
    at = ""
    for node in mapping.nodes:
        if isinstance(node, Storage):
            at = node.level
        elif isinstance(node, Temporal):
            innermost_loops[node.level or at] = node.dim
        else:
            assert isinstance(node, Spatial)
    return innermost_loops


def costs_of_mappings(operator: Operator, engine: Engine) -> list[tuple[Fraction, Mapping]]:
    """The energy-delay products of all legal mappings, in every order of loops."""
    model = layer_problem(operator, engine, parse_objective("edp")).model
    costs = []
    for mapping in every_mapping(operator, engine, perfect=True, idles=False):
        try:
            evaluation = evaluate_mapping(operator, engine, model, mapping)
        except InputError:
            continue
        if not evaluation.violations:
            costs.append((evaluation.energy * evaluation.cycles, mapping))
    return costs


KEEPING = replace(ENGINE, levels=(LEVELS[0], replace(LEVELS[1], may_bypass=frozenset()), LEVELS[2]))
EVERY = ("branch", "exhaustive", "cpsat", "highs")
CASES = [
    (OUTER, ENGINE, ("branch", "cpsat")),
    *(
        pytest.param(*case, EVERY, marks=pytest.mark.slow)
        for case in [
            (gemm(m=2, n=2, k=2), DMA),
            (CONV, KEEPING),
            (GEMM, ENGINE),
            (TWICE, ENGINE),
            (GEMM, DMA),
            (CONV, DMA),
        ]
    ),
]


@pytest.mark.parametrize(("operator", "engine", "solvers"), CASES)
def test_innermost_loops_against_every_mapping(
    operator: Operator, engine: Engine, solvers: tuple[str, ...]
) -> None:
    """The optimum with a level's innermost loop given is that of all mappings with it, in every order."""
    costs = costs_of_mappings(operator, engine)
    for level in ("DRAM", "SPM"):
        for dim in operator.bounds:
            asked = layer_problem(
                operator, engine, parse_objective("edp"), None, [f"innermost@{level}={dim}"], "perfect"
            )
            best = min(
                (cost for cost, mapping in costs if innermost_loops(mapping).get(level, dim) == dim),
                default=None,
            )
            for name in solvers:
                result = solve(asked, name)
                assert result.key == best, (level, dim, name)
                assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
                if result.answer is not None:
                    assert innermost_loops(result.answer).get(level, dim) == dim


def fixed(engine: Engine, role: Role, *, stored: bool) -> Engine:
    """The machine whose scratch-pad always stores a role, or never."""
    spm = engine.levels[1]
    keeps = spm.keeps if stored else spm.keeps - {role}
    spm = replace(spm, may_bypass=spm.may_bypass - {role}, keeps=keeps)
    return replace(engine, levels=(engine.levels[0], spm, engine.levels[2]))


@pytest.mark.parametrize(
    ("operator", "storage", "factors", "solvers"),
    [
        (gemm(m=3, n=1, k=2), "even", "imperfect", ("branch", "cpsat")),
        *(
            pytest.param(operator, storage, factors, EVERY, marks=pytest.mark.slow)
            for operator in (GEMM, gemm(m=5, n=1, k=3))
            for storage in ("even", "uneven")
            for factors in ("perfect", "imperfect")
        ),
    ],
)
def test_storage_against_machines_that_leave_no_choice(
    operator: Operator, storage: str, factors: str, solvers: tuple[str, ...]
) -> None:
    """A demand on storage finds what a machine finds that knows no other."""
    goal = parse_objective("edp")
    for tensor in operator.tensors:
        if tensor.role not in FREE:
            continue
        for stored in (True, False):
            text = f"store({tensor.name}){'=' if stored else '!='}SPM"
            machine = fixed(ENGINE, tensor.role, stored=stored)
            want = solve(layer_problem(operator, machine, goal, None, (), factors, storage), "branch")
            asked = layer_problem(operator, ENGINE, goal, None, [text], factors, storage)
            for name in solvers:
                result = solve(asked, name)
                assert (result.key, result.status) == (want.key, Status.OPTIMAL), (text, name)
                assert result.answer is not None
                assert (Storage(tensor.name, "SPM") in result.answer.nodes) is stored


def test_storage_that_the_machine_does_not_leave_open() -> None:
    """Where a machine always stores a tensor, no mapping bypasses it: that is proven, not refused."""
    problem = layer_problem(GEMM, ENGINE, parse_objective("edp"), None, ["store(C)!=SPM"])
    assert solve(problem, "branch").status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["innermost@RF=C"], "their order is free"),
        (["innermost@SPM=C", "innermost@SPM=K"], "contradicts"),
        (["innermost@SPM=X"], "unknown dimension 'X'"),
        (["innermost@L2=C"], "unknown level 'L2'"),
        (["store(X)=SPM"], "unknown tensor 'X'"),
        (["store(W)=L2"], "unknown level 'L2'"),
    ],
)
def test_what_cannot_be_demanded(rules: list[str], message: str) -> None:
    """Unknown names, free loops and contradictions are one line."""
    with pytest.raises(InputError, match=message):
        layer_problem(CONV, ENGINE, parse_objective("edp"), None, rules)


def test_innermost_loops_elsewhere() -> None:
    """Uneven storage, and levels whose loops count as another's, know no innermost loop of a level."""
    with pytest.raises(InputError, match="even storage only"):
        layer_problem(GEMM, ENGINE, parse_objective("edp"), None, ["innermost@SPM=K"], None, "uneven")
    levels = (
        LEVELS[0],
        replace(LEVELS[1], keeps=frozenset({Role.WEIGHT}), may_bypass=frozenset()),
        LEVELS[2],
    )
    with pytest.raises(InputError, match="count as one"):
        layer_problem(
            pool2d(c=4, p=2, q=1, r=1, s=1),
            replace(ENGINE, levels=levels),
            parse_objective("edp"),
            None,
            ["innermost@DRAM=C"],
        )


def in_order(mapping: Mapping, level: str, dims: tuple[str, ...]) -> bool:
    """Whether a level's loops in time stand as given, those that are not named outermost."""
    at, loops = "", []
    for node in mapping.nodes:
        if isinstance(node, Storage):
            at = node.level
        elif isinstance(node, Temporal) and (node.level or at) == level:
            loops.append(dims.index(node.dim) if node.dim in dims else -1)
    return loops == sorted(loops)


TIGHT = replace(
    ENGINE,
    levels=(
        LEVELS[0],
        replace(LEVELS[1], capacity=6, may_bypass=frozenset()),
        replace(LEVELS[2], capacity=3),
    ),
)
"""With so little room orders matter."""


@pytest.mark.parametrize(
    ("operator", "engine", "solvers", "orders"),
    [
        (GEMM, TIGHT, ("branch",), 6),
        *(
            pytest.param(*case, EVERY, orders, marks=pytest.mark.slow)
            for *case, orders in [
                (gemm(m=4, n=3, k=2), TIGHT, 6),
                (CONV, TIGHT, 6),
                (TWICE, TIGHT, 6),
                (GEMM, DMA, 6),
            ]
        ),
    ],
)
def test_orders_of_loops_against_every_mapping(
    operator: Operator, engine: Engine, solvers: tuple[str, ...], orders: int
) -> None:
    """The optimum with a level's order given is that of all mappings whose loops stand in it."""
    moving = [dim for dim, bound in operator.bounds.items() if bound > 1]
    costs = costs_of_mappings(operator, engine)
    distinct = set()
    for level in ("DRAM", "SPM"):
        for dims in sorted(permutations(moving))[:orders]:
            text = f"order@{level}={','.join(dims)}"
            asked = layer_problem(operator, engine, parse_objective("edp"), None, [text], "perfect")
            best = min((cost for cost, mapping in costs if in_order(mapping, level, dims)), default=None)
            distinct.add(best)
            for name in solvers:
                result = solve(asked, name)
                assert result.key == best, (text, name)
                assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
                if result.answer is not None:
                    assert in_order(result.answer, level, dims)
                    assert not asked.evaluate(result.answer).violations
    assert engine is not TIGHT or len(distinct) > 1


def test_tiles_that_are_whole_blocks() -> None:
    """A multiple, or the whole dimension; the optimum is that of the mappings that comply."""
    operator = gemm(m=6, n=3, k=4)
    rules = ["tile(M@SPM)%2", "tile(N@SPM)%2"]
    problem = layer_problem(operator, KEEPING, parse_objective("energy"), None, rules)
    result = solve(problem, "branch")
    assert result.key == solve(problem, "exhaustive").key
    assert result.answer is not None
    tiles = {"M": 6, "N": 3}
    for node in result.answer.nodes:
        if isinstance(node, Storage) and node.level == "SPM":
            break
        if isinstance(node, Temporal) and node.dim in tiles:
            tiles[node.dim] = node.tile
    assert tiles["M"] % 2 == 0
    assert tiles["N"] == 3 or tiles["N"] % 2 == 0
    for text in ("tile(M@SPM)%0", "trips(M@SPM)%2", "order@DRAM=M,M", "order@DRAM=M,X", "set=gemini"):
        with pytest.raises(InputError):
            layer_problem(operator, KEEPING, parse_objective("energy"), None, [text])
