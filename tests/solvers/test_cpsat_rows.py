"""Enforced rows stated by digits: the same solutions, narrow rows, hints carried on, and refusals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest
from effort import effort
from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers import cpsat_run
from tilewright.solvers.cpsat_rows import WIDE, narrowed
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.mapping.cpsat.statement import state
from tilewright.solvers.mapping.presolve.intervals import whole_space
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.layer_text import parse_layer


@dataclass
class Stated:
    """A random model, and its rules as Python functions of an assignment."""

    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    variables: list[cp_model.IntVar] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    rows: list[tuple[list[tuple[int, bool]], list[int], cp_model.Domain]] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)

    def variable(self, values: list[int]) -> None:
        domain = cp_model.Domain.from_values(values)
        self.variables.append(self.model.new_int_var_from_domain(domain, ""))
        self.values.append(sorted(values))

    def row(self, holds: list[tuple[int, bool]], weights: list[int], domain: cp_model.Domain) -> None:
        """A sum in a domain where some of the first variables are as given."""
        terms = sum(w * x for w, x in zip(weights, self.variables, strict=True))
        row = self.model.add_linear_expression_in_domain(terms, domain)
        row.only_enforce_if([self.variables[i] if on else ~self.variables[i] for i, on in holds])
        self.rows.append((holds, weights, domain))

    def solutions(self) -> Iterator[tuple[int, ...]]:
        for point in product(*self.values):
            if all(
                any(point[i] != on for i, on in holds)
                or domain.contains(sum(w * x for w, x in zip(weights, point, strict=True)))
                for holds, weights, domain in self.rows
            ):
                yield point

    def cost(self, point: tuple[int, ...]) -> int:
        return sum(c * x for c, x in zip(self.costs, point, strict=True))


def random_domain(chance: random.Random, low: int, high: int) -> cp_model.Domain:
    """At most, at least, equal, between, different from, or several intervals."""
    a, b, c, d = sorted(chance.randint(low, high) for _ in range(4))
    least, most = -(2**63), 2**63 - 1
    return chance.choice(
        [
            cp_model.Domain(least, b),
            cp_model.Domain(b, most),
            cp_model.Domain(b, c),
            cp_model.Domain.from_intervals([[least, b - 1], [b + 1, most]]),
            cp_model.Domain.from_intervals([[a, b], [c, d]]),
        ]
    )


def random_model(seed: int) -> Stated:
    """Three literals, some literals and integers as terms, rows enforced by one or two of the first."""
    chance, stated = random.Random(seed), Stated()
    for _ in range(3):
        stated.variable([0, 1])
    large = chance.choice((10, 4 * 10**9))
    for _ in range(chance.randint(2, 5)):
        kind = chance.randrange(3)
        if kind == 0:
            stated.variable([0, 1])
        elif kind == 1:
            stated.variable(sorted({chance.randint(-large, large) for _ in range(2)}))
        else:
            stated.variable([chance.randint(-5, 5) * 10**9 + k for k in range(3)])
    if stated.values[3] == [0, 1]:
        stated.model.add_at_most_one([~stated.variables[0], stated.variables[3]])
        stated.rows.append(([(0, False), (3, True)], [0] * len(stated.variables), cp_model.Domain(1, 1)))
    for _ in range(chance.randint(1, 4)):
        weights = [0, 0, 0]
        for values in stated.values[3:]:
            weights.append(
                chance.randint(-4 * 10**9, 4 * 10**9) if values == [0, 1] else chance.randint(-3, 3)
            )
        sums = [
            sum(w * chance.choice(v) for w, v in zip(weights, stated.values, strict=True)) for _ in range(9)
        ]
        holds = [(i, chance.random() < 0.5) for i in chance.sample(range(3), chance.randint(1, 2))]
        hit = chance.choice(sums)
        domain = (
            cp_model.Domain(hit, hit)
            if chance.random() < 0.3
            else random_domain(chance, min(sums), max(sums))
        )
        stated.row(holds, weights, domain)
    stated.costs = [chance.randint(-9, 9) for _ in stated.variables]
    stated.model.minimize(sum(c * x for c, x in zip(stated.costs, stated.variables, strict=True)))
    return stated


def wide_rows(model: cp_model.CpModel) -> int:
    """Enforced rows whose coefficients times ranges reach 2^31."""
    domains = [[*variable.domain] for variable in model.proto.variables]
    return sum(
        sum(
            abs(c) * (domains[v][-1] - domains[v][0])
            for v, c in zip(row.linear.vars, row.linear.coeffs, strict=True)
        )
        >= WIDE
        for row in model.proto.constraints
        if row.has_linear() and len(row.enforcement_literal)
    )


def answer(model: cp_model.CpModel) -> tuple[CpSatRun, int | None]:
    """A run to its end, and the value that it calls optimal."""
    run = CpSatRun(model, Limits(threads=1), lambda: False)
    if run.solve() != cp_model.OPTIMAL:
        return run, None
    return run, round(run.solver.objective_value)


@pytest.mark.slow
def test_many_random_models_equal_enumeration() -> None:
    """As below, over thousands of models."""
    check_random_models(range(10_000, 10_000 + effort(4_000)))


def test_random_models_equal_enumeration() -> None:
    """Optimum and infeasibility of models with wide rows are those of a look at every assignment."""
    wide = check_random_models(range(effort(300)))
    assert wide > effort(300) // 2


def check_random_models(seeds: range) -> int:
    """How many of the models had wide rows."""
    wide = 0
    for seed in seeds:
        stated = random_model(seed)
        wide += wide_rows(stated.model) > 0
        least = min(map(stated.cost, stated.solutions()), default=None)
        run, value = answer(stated.model)
        assert (run.doubt, value) == ("", least), seed
        assert least is not None or run.status == cp_model.INFEASIBLE, seed
        assert wide_rows(stated.model) == 0
    return wide


def test_every_solution_has_one_continuation() -> None:
    """A narrowed model with the first variables given has a solution exactly where the rules allow them.

    What a presolve might do is left out of it: a propagation of given values decides.
    """
    checked = 0
    for seed in range(effort(40)):
        stated = random_model(seed)
        legal = set(stated.solutions())
        chance = random.Random(seed)
        assert narrowed(stated.model) == ""
        points = [tuple(chance.choice(v) for v in stated.values) for _ in range(5)]
        for point in [*points, *sorted(legal)[:2]]:
            given = stated.model.clone()
            for variable, value in zip(stated.variables, point, strict=True):
                given.add(given.get_int_var_from_proto_index(variable.index) == value)
            status = CpSatRun(given, Limits(threads=1), lambda: False).solve()
            assert (status == cp_model.OPTIMAL) == (point in legal), (seed, point)
            checked += 1
    assert checked > 2 * effort(40)


def test_a_complete_hint_stays_complete() -> None:
    """A solution that is suggested for all variables is one of the narrowed model, with its new variables."""
    hinted = 0
    for seed in range(effort(60)):
        stated = random_model(seed)
        point = next(stated.solutions(), None)
        if point is None:
            continue
        for variable, value in zip(stated.variables, point, strict=True):
            stated.model.add_hint(variable, value)
        run = CpSatRun(stated.model, Limits(threads=1), lambda: False)
        run.solver.parameters.fix_variables_to_their_hinted_value = True
        assert run.solve() == cp_model.OPTIMAL
        assert round(run.solver.objective_value) == stated.cost(point)
        assert len(stated.model.proto.solution_hint.vars) == len(stated.model.proto.variables)
        hinted += 1
    assert hinted > effort(60) // 2


def test_a_narrow_model_is_left_alone() -> None:
    """Rows of 2^31 - 1 stay as they are stated; one more, and they do not."""
    for most, rows in ((WIDE - 1, 1), (WIDE, 2)):
        model = cp_model.CpModel()
        x, holds = model.new_int_var(0, most, ""), model.new_bool_var("")
        model.add(x <= 7).only_enforce_if(holds)
        assert narrowed(model) == ""
        assert len([row for row in model.proto.constraints if row.has_linear()]) == rows


def too_wide() -> cp_model.CpModel:
    """At least -2^61, where a row that says more cannot be stated by digits."""
    model = cp_model.CpModel()
    x, y = (model.new_int_var(0, 1 << 60, "") for _ in range(2))
    holds = model.new_bool_var("")
    model.add(x + y >= 1 << 60).only_enforce_if(holds)
    model.add(holds == 1)
    model.minimize(x - y)
    return model


def long_interval() -> cp_model.CpModel:
    """An optional interval with a beginning, a length and an end of 2^31 each."""
    model = cp_model.CpModel()
    begin, length, end = (model.new_int_var(0, 1 << 31, "") for _ in range(3))
    model.new_optional_interval_var(begin, length, end, model.new_bool_var(""), "")
    model.minimize(begin - end)
    return model


@pytest.mark.parametrize(("stated", "least"), [(too_wide, -(1 << 60)), (long_interval, -(1 << 31))])
def test_what_cannot_be_narrowed_is_no_proof(stated: Callable[[], cp_model.CpModel], least: int) -> None:
    """The best solution is feasible, not optimal; the bound is that of the domains, and none is told."""
    reported: list[int] = []
    run = CpSatRun(stated(), Limits(threads=1), lambda: False, None, reported.append)
    assert run.solve() == cp_model.FEASIBLE
    assert (run.bound, reported) == (least, [])
    assert run.doubt


@pytest.mark.parametrize("stated", [too_wide, long_interval])
def test_infeasible_is_not_claimed_in_doubt(stated: Callable[[], cp_model.CpModel]) -> None:
    """A model that cannot be narrowed and has no solution is unknown."""
    model = stated()
    model.add_bool_or([])
    run = CpSatRun(model, Limits(threads=1), lambda: False)
    assert run.solve() == cp_model.UNKNOWN


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Per model that is solved, its wide rows before and after."""
    counts: list[tuple[int, int]] = []

    def narrowed_and_counted(model: cp_model.CpModel) -> str:
        before = wide_rows(model)
        doubt = narrowed(model)
        counts.append((before, wide_rows(model)))
        return doubt

    monkeypatch.setattr(cpsat_run, "narrowed", narrowed_and_counted)
    return counts


def test_models_of_layers_are_narrow(counted: list[tuple[int, int]]) -> None:
    """A large layer's counts pass 2^31 in rows with conditions; none of these is left."""
    operator = parse_layer("gemm:M=4096,N=4096,K=4096")[1]
    engine, objective = load_engine("nvdla-256"), parse_objective("energy")
    problem = layer_problem(operator, engine, objective, factors="perfect")
    tables = Tables(problem.space.groups, [problem.statement.energy, problem.statement.cycles])
    model = state(problem, tables, whole_space(problem, tables), None).decisions.model
    run = CpSatRun(model, Limits(0.1, threads=1), lambda: False)
    run.solve()
    assert run.doubt == ""
    assert counted[0][0] > 0 == counted[0][1]


def test_models_of_plans_are_narrow(counted: list[tuple[int, int]]) -> None:
    """So do the cycles of links with a rate of many digits."""
    machine = load_tiled_machine("atomic-2x2[link=0.013]")
    network = resolve_model("conv:K=32,C=16,P=8,Q=8,R=3,S=3", 1)
    problem = TiledProblem(network, machine, tiled_objective("makespan"))
    plan_run(lambda: problem, "exact", Limits(2, threads=1)).run()
    assert max(before for before, _ in counted) > 0
    assert not any(after for _, after in counted)
