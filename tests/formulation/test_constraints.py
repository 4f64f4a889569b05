"""What a user demands: every rule narrows the space as filtering plain enumeration does."""

from __future__ import annotations

import operator as op
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian
from math import prod

import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import Instance, instances, metric_caps, order_rules, tile_rules

from tilewright.formulation.expression import Expr
from tilewright.formulation.expression.exact import ExactReader
from tilewright.formulation.mapping.demands.constraints import (
    applicable,
    network_constraints,
    parse_constraints,
)
from tilewright.formulation.mapping.demands.demand import read_demand
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.matrices import gemm
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import conv2d, pool2d

COMPARE = {"<=": op.le, ">=": op.ge, "=": op.eq, "==": op.eq, "!=": op.ne}
LEVELS = (
    MemoryLevel("DRAM", None, Fraction(10), Fraction(10)),
    MemoryLevel("SPM", 40, Fraction(2), Fraction(2), fanout=Fanout((ArrayAxis("x", 2), ArrayAxis("y", 2)))),
    MemoryLevel("RF", 8, Fraction(1), Fraction(1)),
)
ENGINE = Engine("small", "hierarchy", 16, Fraction(1), Fraction(500), LEVELS)
CONV = conv2d(k=4, c=2, p=2, q=1, r=1, s=1)


def figure(problem: LayerProblem, rule: str, assignment: dict) -> int:  # type: ignore[type-arg]
    """The number that a tile rule speaks of, at one point of the space."""
    match = re.match(r"(tile|trips|spatial)\((\w+)(?:@([\w-]+))?\)", rule)
    assert match is not None
    what, dim, site = match.groups()
    nest = problem.space.nest

    def tile(boundary: int) -> int:
        expr: Expr = nest.boundaries[boundary][dim]
        return assignment.get(expr) or expr.value  # type: ignore[attr-defined,no-any-return]

    sites = [str(site) for site in problem.space.sites]
    levels = [level.name for level in problem.engine.levels]
    stored = {tensor.role for tensor in problem.operator.tensors}
    homes = [level.name for level in problem.engine.levels if level.keeps & stored]

    def counts_as(place: str) -> str:
        """The level itself, or the nearest one outside that can store a tensor."""
        return next(name for name in levels[levels.index(place) :: -1] if name in homes)

    if what == "tile":
        at = [levels.index(s.split(":")[0] if ":" in s else counts_as(s)) for s in sites]
        return tile(next((i for i, level in enumerate(at) if level >= levels.index(str(site))), len(sites)))
    if what == "trips":
        places = [i for i, name in enumerate(sites) if ":" not in name and counts_as(name) == site]
    else:
        places = [i for i, name in enumerate(sites) if ":" in name and site in (None, name.split(":")[1])]
    return prod(-(-tile(i) // tile(i + 1)) for i in places)


def points(problem: LayerProblem) -> list[tuple[int, ...]]:
    """Tile sizes of every row combination, by variable name."""
    return [
        tuple(v for row in rows for v in row)
        for rows in cartesian(*(group.rows.tolist() for group in problem.space.groups))
    ]


def holds(problem: LayerProblem, rule: str, assignment: dict) -> bool:  # type: ignore[type-arg]
    """Whether a point satisfies a tile rule, read from its text."""
    if rule.startswith("spatial="):
        allowed = rule.removeprefix("spatial=").split(",")
        barred = [dim for dim in problem.operator.bounds if dim not in allowed]
        return all(figure(problem, f"spatial({dim})", assignment) == 1 for dim in barred)
    match = re.search(r"\)(<=|>=|==|=|!=)(\d+)$", rule)
    assert match is not None
    return bool(COMPARE[match[1]](figure(problem, rule, assignment), int(match[2])))


@st.composite
def ruled(draw: st.DrawFn, model: str) -> tuple[Instance, str]:
    instance = draw(instances(model, most=12, largest=3000))
    return instance, draw(tile_rules(instance.operator, instance.engine))


@settings(max_examples=effort(60))
@given(st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(ruled))
def test_tile_rules_keep_exactly_the_rows_that_satisfy_them(case: tuple[Instance, str]) -> None:
    """Tile sizes, trip counts and spatial splits: the same rows as filtering the free space."""
    instance, rule = case
    free = instance.problem()
    narrowed = replace(instance, constraints=(rule,)).problem()
    variables = [variable for group in free.space.groups for variable in group.variables]
    expected = [
        point for point in points(free) if holds(free, rule, dict(zip(variables, point, strict=True)))
    ]
    impossible = any(limit.name == read_demand(rule).text for limit in narrowed.limits)
    assert impossible or points(narrowed) == expected
    assert not impossible or not expected


@st.composite
def capped(draw: st.DrawFn, model: str) -> tuple[Instance, str]:
    instance = draw(instances(model, most=12, largest=500))
    return instance, draw(metric_caps(instance.operator, instance.engine))


@settings(max_examples=effort(60))
@given(st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(capped))
def test_caps_on_metrics_keep_exactly_the_points_below_them(case: tuple[Instance, str]) -> None:
    """Energy, cycles, their product and utilization: limits hold where the stated figures do."""
    instance, rule = case
    problem = replace(instance, constraints=(rule,)).problem()
    [limit] = [limit for limit in problem.limits if limit.name == read_demand(rule).text]
    metric, number = re.split("[<>]=", rule)
    variables = [variable for group in problem.space.groups for variable in group.variables]
    for point in points(problem)[:40]:
        assignment = dict(zip(variables, point, strict=True)) | dict.fromkeys(problem.space.selectors, 0)
        reader = ExactReader(assignment)
        energy = Fraction(reader.read(problem.statement.energy), problem.statement.energy_scale)
        cycles = reader.read(problem.statement.cycles)
        work = Fraction(instance.operator.iterations, cycles * instance.engine.instances)
        value = {"energy": energy, "cycles": Fraction(cycles), "edp": energy * cycles, "utilization": work}
        expected = COMPARE[rule[len(metric) : len(metric) + 2]](value[metric], Fraction(number))
        assert (reader.read(limit.expr) <= limit.bound) is expected


@st.composite
def demanding(draw: st.DrawFn, model: str) -> Instance:
    """A small instance under up to three rules, on a machine where every level always stores something."""
    instance = draw(instances(model, most=6, largest=60, constrained=True))
    roles = {tensor.role for tensor in instance.operator.tensors}
    assume(all(roles & level.keeps - level.may_bypass for level in instance.engine.levels))
    assume(instance.constraints)
    return instance


def _agrees_with_filtering(instance: Instance) -> None:
    problem = instance.problem()
    free = replace(instance, constraints=()).problem()
    best = None
    for mapping in set(map(free.decode, _assignments(free))):
        evaluation = problem.evaluate(mapping)
        if not evaluation.violations:
            key = problem.key_of(evaluation)
            best = key if best is None else min(best, key)
    for name in ("exhaustive", "branch"):
        result = solve(problem, name)
        assert result.key == best
        assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)


@settings(max_examples=effort(30))
@given(st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(demanding))
def test_the_optimum_under_rules_is_the_best_mapping_that_the_evaluator_accepts(instance: Instance) -> None:
    """Searching the narrowed space equals filtering all mappings of the free one by their evaluation."""
    _agrees_with_filtering(instance)


@st.composite
def ordered(draw: st.DrawFn, model: str) -> Instance:
    """The same with rules on loop orders."""
    instance = draw(demanding(model))
    rules = st.lists(order_rules(instance.operator, instance.engine), min_size=1, max_size=2)
    return replace(instance, constraints=(*instance.constraints[:1], *draw(rules)))


@settings(max_examples=effort(18))
@given(st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(ordered))
def test_order_rules_keep_exactly_what_the_evaluator_accepts(instance: Instance) -> None:
    """Where loops that could keep the tensor run at a level, one of them is innermost; else all is free."""
    _agrees_with_filtering(instance)


@pytest.mark.parametrize(
    ("dram", "spm", "rule", "broken"),
    [
        ("CK", "", "stationary@DRAM=I", False),
        ("KC", "", "stationary@DRAM=I", True),
        ("K", "C", "stationary@DRAM=O", False),
        ("KC", "K", "stationary@DRAM=O", False),
        ("CP", "C", "stationary@DRAM=O", True),
        ("", "CK", "stationary@SPM=O", True),
    ],
)
def test_which_orders_keep_a_tensor(dram: str, spm: str, rule: str, broken: bool) -> None:
    """The innermost loop of the level counts, unless no loop there could keep the tensor in place."""
    operator = conv2d(k=4, c=4, p=2, q=1, r=1, s=1)
    tile = dict(operator.bounds)
    rows = []
    for level, loops in (("DRAM", dram), ("SPM", spm), ("RF", "KCP")):
        rows += [{"store": name, "level": level} for name in "IWO"]
        for dim in loops:
            tile[dim] = 1 if level == "RF" else tile[dim] // 2  # twice for C and K
            rows.append({"temporal": dim, "tile": tile[dim]})
    problem = layer_problem(operator, ENGINE, parse_objective("edp"), constraints=[rule])
    evaluation = problem.evaluate(Mapping.from_data(rows))
    assert (f"constraint {rule}" in evaluation.violations) is broken


@pytest.mark.parametrize("capacity", [3, 4, 5, 6, 8])
@pytest.mark.parametrize("tensor", ["A", "B", "O"])
def test_an_order_keeps_a_tensor_only_along_loops_that_run(tensor: str, capacity: int) -> None:
    """Two tensors that share one loop of their runs: without iterations of it, the order keeps neither."""
    operator = nest("O[a,b,c] += A[b] * B[c]", bounds={"a": 2, "b": 2, "c": 2})
    levels = (
        MemoryLevel("L0", None, Fraction(10), Fraction(1)),
        MemoryLevel("L1", capacity, Fraction(1), Fraction(1)),
    )
    engine = Engine("e", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    _agrees_with_filtering(Instance(operator, engine, "energy", (f"stationary@L0={tensor}", "trips(a@L0)=1")))


@pytest.mark.parametrize(
    "rules",
    [
        ["trips(C@L1)=1", "trips(P@L1)=1"],
        ["trips(C@L1)=4"],
        ["tile(C@L1)=4"],
        ["tile(C@L1)=1"],
        ["trips(C@L0)=4"],
        ["trips(C@L0)=1", "trips(P@L0)=1"],
    ],
)
@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_loops_of_a_level_that_stores_nothing_count_as_those_of_the_level_outside(
    rules: list[str], objective: str
) -> None:
    """Every solver and the evaluator read rules on such levels alike."""
    levels = (
        MemoryLevel("L0", None, Fraction(10), Fraction(1)),
        MemoryLevel("L1", 1000, Fraction(0), Fraction(0), keeps=frozenset({Role.WEIGHT})),
        MemoryLevel("L2", 4, Fraction(0), Fraction(0)),
    )
    engine = Engine("e", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    pooling = pool2d(c=4, p=2, q=1, r=1, s=1)
    _agrees_with_filtering(Instance(pooling, engine, objective, tuple(rules)))


@pytest.mark.parametrize(
    ("rule", "factors"),
    [
        pytest.param(rule, factors, marks=() if (place + turn) % 2 == 0 else pytest.mark.slow)
        for place, rule in enumerate(
            ["trips(N@L0)<=1", "trips(N@L1)<=1", "tile(N@L1)=3", "tile(N@L1)=2", "trips(C@L0)=2"]
        )
        for turn, factors in enumerate(["imperfect", "perfect"])
    ],
)
def test_loops_of_a_level_that_everything_may_bypass_count_as_its_own(rule: str, factors: str) -> None:
    """Whether or not a tensor stays there: the mapping says at which level a loop stands."""
    array = Fanout((ArrayAxis("x", 2),), sharing=True)
    levels = (
        MemoryLevel("L0", None, Fraction(0), Fraction(0), fanout=array),
        MemoryLevel("L1", 4, Fraction(0), Fraction(1), may_bypass=frozenset({Role.INPUT, Role.OUTPUT})),
        MemoryLevel("L2", 4, Fraction(0), Fraction(0)),
    )
    engine = Engine("e", "hierarchy", 16, Fraction(0), Fraction(500), levels)
    pooling = pool2d(n=3, c=2, p=1, q=1, r=1, s=1)
    _agrees_with_filtering(Instance(pooling, engine, "energy", (rule,), factors))


def test_the_innermost_loops_have_no_order() -> None:
    """A rule on their order is an error: no search chooses it."""
    with pytest.raises(InputError, match="RF"):
        layer_problem(CONV, ENGINE, parse_objective("edp"), constraints=["stationary@RF=O"])


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("weight-stationary", "stationary@SPM=W"),
        ("Output-Stationary", "stationary@SPM=O"),
        ("input-stationary@DRAM", "stationary@DRAM=I"),
    ],
)
def test_dataflows_have_words(word: str, meant: str) -> None:
    """A role's word is the order of the loops that feed the innermost level, or of the named one."""
    spoken, written = (
        layer_problem(CONV, ENGINE, parse_objective("edp"), constraints=[constraint])
        for constraint in (word, meant)
    )
    assert spoken.constraints.texts == written.constraints.texts == (meant,)


def test_a_word_serves_every_layer() -> None:
    """Weights are called differently from layer to layer; the word stays, and who has none is named."""
    layers = [
        ("conv", CONV),
        ("product", gemm(m=2, n=2, k=2)),
        ("pool", pool2d(n=1, c=2, p=2, q=2, r=2, s=2)),
    ]
    lines, notes = network_constraints(["weight-stationary"], layers, ENGINE)
    assert applicable(lines, CONV, ENGINE) == ("stationary@SPM=W",)
    assert applicable(lines, gemm(m=2, n=2, k=2), ENGINE) == ("stationary@SPM=B",)
    assert len(notes) == 1
    assert "pool" in notes[0]


def _assignments(problem: LayerProblem) -> list[dict]:  # type: ignore[type-arg]
    variables = [variable for group in problem.space.groups for variable in group.variables]
    selectors = problem.space.selectors
    choices = list(cartesian(*(selector.domain for selector in selectors)))
    return [
        dict(zip((*variables, *selectors), (*point, *choice), strict=True))
        for point in points(problem)
        for choice in choices
    ]


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("tile(K@SPM)<=2", True),
        ("tile(K@SPM)<=4", False),
        ("tile(P@RF)=1", False),
        ("tile(P@RF)>=2", True),
        ("trips(C@DRAM)=1", True),
        ("trips(C@DRAM)=2", False),
        ("trips(P@RF)!=1", True),
        ("spatial(K)=2", False),
        ("spatial(K@x)=2", False),
        ("spatial(K@y)=2", True),
        ("spatial=K,P", False),
        ("spatial=C,P", True),
        ("spatial=C,K", True),
        ("cycles<=4", False),
        ("cycles<=3", True),
        ("utilization>=1", False),
        ("energy<=1e9", False),
        ("energy<=1", True),
        ("edp<=1e9", False),
        ("edp<=10", True),
        ("stationary@DRAM=O", False),
    ],
)
def test_the_evaluator_names_the_rule_that_a_mapping_breaks(rule: str, broken: bool) -> None:
    """A mapping is checked against every rule, wherever it came from."""
    rows = [{"store": name, "level": "DRAM"} for name in "IWO"]
    rows += [{"temporal": "C", "tile": 1}]
    rows += [{"store": name, "level": "SPM"} for name in "IWO"]
    rows += [{"temporal": "K", "tile": 2}]
    rows += [{"spatial": "K", "tile": 1, "axis": "x"}, {"spatial": "P", "tile": 1, "axis": "y"}]
    rows += [{"store": name, "level": "RF"} for name in "IWO"]
    problem = layer_problem(CONV, ENGINE, parse_objective("edp"), constraints=[rule])
    evaluation = problem.evaluate(Mapping.from_data(rows))
    if broken:
        assert len(evaluation.violations) == 1
        assert rule in evaluation.violations[0] or rule.startswith("spatial=")
    else:
        assert evaluation.violations == ()


@pytest.mark.parametrize("rule", ["tile(X@SPM)<=4", "spatial(N)=1", "trips(G@RF)=1", "stationary@SPM=Z"])
def test_rules_on_what_an_operator_does_not_have_are_left_out(rule: str) -> None:
    """One command line serves a whole network: other layers have other dimensions and tensors."""
    layers = [("conv", CONV), ("other", nest("Z[X,N,G] = A[X,N,G] : X=2, N=2, G=2"))]
    lines, notes = network_constraints([rule], layers, ENGINE)
    assert applicable(lines, CONV, ENGINE) == (("spatial(N)=1",) if "N" in rule else ())
    assert len(notes) == ("N" not in rule)
    assert all(f"constraint {rule}: 1 of 2 layers has no" in note and "(conv)" in note for note in notes)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("tile(ZZ@SPM)<=4", "tile(ZZ@SPM)<=4: unknown dimension 'ZZ', expected one of N, K, C, P, Q, R, S"),
        ("spatial=K,CC", "unknown dimension 'CC', did you mean 'C'?"),
        ("stationary@SPM=OO", "unknown tensor 'OO', did you mean 'O'?, expected one of"),
        ("tile(K@SPN)<=4", "unknown level 'SPN', did you mean 'SPM'?"),
    ],
)
def test_a_name_that_no_layer_has_is_refused(rule: str, message: str) -> None:
    """A misspelt dimension, tensor or level is an error with the nearest name, for one layer or several."""
    with pytest.raises(InputError) as caught:
        layer_problem(CONV, ENGINE, parse_objective("edp"), constraints=[rule])
    with pytest.raises(InputError) as several:
        network_constraints([rule], [("a", CONV), ("b", CONV)], ENGINE)
    assert message in str(caught.value)
    assert message in str(several.value)


@pytest.mark.parametrize(
    ("rule", "twin"),
    [
        ("spatial=c,k", "spatial = K,C,K"),
        ("cycles<=1e6", "cycles <= 1000000.0"),
        ("utilization>=0.50", "utilization>=5e-1"),
        ("tile(k@spm) == 04", "tile(K@SPM)=4"),
        ("spatial(k@X)<=2", "spatial( K @ x )<=2"),
        ("stationary@spm=o", "stationary@SPM=O"),
    ],
)
def test_equal_demands_hash_equally(rule: str, twin: str) -> None:
    """Writing, case and repetition do not matter: neither to the problem's hash nor to its space."""
    edp = parse_objective("edp")
    problems = [
        layer_problem(CONV, ENGINE, edp, constraints=lines) for lines in ([rule], [twin], [twin, rule, twin])
    ]
    assert len({problem.content_hash for problem in problems}) == 1
    assert len({problem.constraints for problem in problems}) == 1
    assert problems[0].content_hash != layer_problem(CONV, ENGINE, edp).content_hash


def test_names_that_differ_in_case_alone_must_be_exact() -> None:
    """Where a nest has both n and N, each is itself and nothing stands for either."""
    operator = nest("O[n,N,k] += A[n,N] * B[k] : n=2, N=2, k=2")
    assert applicable(["tile(n@SPM)<=1"], operator, ENGINE) == ("tile(n@SPM)<=1",)
    assert applicable(["tile(K@SPM)<=1"], operator, ENGINE) == ("tile(k@SPM)<=1",)
    both = nest("O[nn,NN] += A[nn] * B[NN] : nn=2, NN=2")
    with pytest.raises(InputError, match="'Nn' may be 'nn' or 'NN'"):
        applicable(["tile(Nn@SPM)<=1"], both, ENGINE)


def test_spreading_only_what_a_layer_lacks_spreads_nothing() -> None:
    """spatial=G bars every dimension of a layer without G, as it says."""
    assert applicable(["spatial=G"], CONV, ENGINE) == tuple(sorted(f"spatial({d})=1" for d in CONV.bounds))


def test_rules_are_read_with_spaces_and_remembered_in_one_sequence() -> None:
    """White space is free, and the same rules in another sequence are the same demands."""
    constraint_set = parse_constraints(["tile(K @ SPM) <= 4", "cycles <= 1e6"], CONV, ENGINE)
    other = parse_constraints(["cycles <= 1e6", "tile(K@SPM)<=4"], CONV, ENGINE)
    assert constraint_set == other
    assert constraint_set.texts == ("cycles<=1000000", "tile(K@SPM)<=4")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("cycle<=3", "cannot read 'cycle<=3', expected such as cycles<=1e6"),
        ("cycles<3", "cannot read"),
        ("tile(K@SPM)~4", "cannot read"),
        ("tile(K)<=4", "names no level, expected one of DRAM, SPM, RF: tile(K@RF)"),
        ("tile(K@L2)<=4", "unknown level 'L2', expected one of DRAM, SPM, RF"),
        ("trips(K@L2)=1", "unknown level 'L2'"),
        ("spatial(K@z)=4", "unknown axis 'z', expected one of x, y"),
        ("stationary@L2=O", "unknown level 'L2'"),
        ("cycles>=10", "cycles takes <="),
        ("utilization<=0.5", "utilization takes >="),
        ("utilization>=1.5", "expected a positive number up to 1"),
        ("energy<=0", "expected a positive number"),
        ("energy<=1e", "expected a number, got '1e'"),
        ("energy<=-5", "expected a positive number"),
        ("utilization>=1e999999999", "expected a number from 1e-100 to 1e100"),
        ("energy<=1e-999999999", "expected a number from 1e-100 to 1e100"),
        ("energy<=" + "9" * 5000, "expected a number from 1e-100 to 1e100"),
        ("energy<=1/0", "division by 0"),
        ("energy<=nan", "cannot read"),
        ("tile(K@SPM)<=" + "9" * 30, "at most 15 digits"),
        ("tile(K@SPM)<=\u0664", "cannot read"),
        ("", "cannot read ''"),
        ("tile(K@SPM)<=4 extra", "cannot read"),
    ],
)
def test_a_malformed_rule_is_one_line(rule: str, message: str) -> None:
    """What cannot be read, or names what the engine does not have, is an error in one line."""
    with pytest.raises(InputError) as caught:
        layer_problem(CONV, ENGINE, parse_objective("edp"), constraints=[rule])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("--constraint")


def test_unknown_cost_models_and_factors_are_errors() -> None:
    """The two other choices of a problem name what was expected."""
    objective = parse_objective("edp")
    with pytest.raises(
        InputError, match="unknown name 'maestro' \\(expected one of: hierarchy, dmazerunner\\)"
    ):
        layer_problem(CONV, ENGINE, objective, "maestro")
    with pytest.raises(InputError, match="unknown 'odd', expected perfect or imperfect"):
        layer_problem(CONV, ENGINE, objective, factors="odd")
