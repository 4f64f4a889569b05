"""Trees as plans of the common kind, and the methods that find them."""

import itertools
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status, TracePoint
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.expansion import expand
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, rooted
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.blueprint import Blueprint
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.networks.googlenet import MODULES, inception
from tilewright.workloads.networks.resnet import bottleneck

EDGE = load_tiled_machine("set-edge-4x4")
FREE = EDGE.changed(link_rate=1e15, port_rate=1e15, dram_rate=1e15, dram_port_rate=1e15, hop_cycles=0)
"""Neither links nor DRAM ever bind."""


def stated(model: str, batch: int, machine: TiledMachine) -> tuple[TiledProblem, ClosedForm]:
    """A problem and its closed form."""
    problem = TiledProblem(resolve_model(model, 1), machine, tiled_objective("edp"), batch=batch)
    network = set_network(problem.units, model)
    return problem, engine_form(network, machine, batch, Rules())


def segmented(form: ClosedForm, kind: str, size: int, groups: int) -> Node:
    """Segments of equal length, those that do not fit layer by layer."""
    row: list[Node] = []
    for low in range(0, len(form.network), size):
        layers = range(low, min(low + size, len(form.network)))
        inner = tuple(Leaf(layer, form.batch // groups) for layer in layers)
        made: Node = Cut("S" if kind == "S" else "T", form.batch, groups, inner)
        fits = len(inner) > 1 and not isinstance(form.segment(made, form.batch), Unfit)
        row.extend([made] if fits else [Leaf(layer, form.batch) for layer in layers])
    return rooted(row, form.batch)


@pytest.mark.parametrize(("model", "batch"), [("darknet19", 1), ("googlenet", 1), ("resnet50", 4)])
def test_plans_of_t_cuts_take_what_the_closed_form_says(model: str, batch: int) -> None:
    """Where neither links nor DRAM bind, a plan of T cuts takes the closed form's cycles exactly."""
    problem, form = stated(model, batch, FREE)
    for size, groups in ((1, 1), (5, 1), (3, batch)):
        cost = form.evaluate(segmented(form, "T", size, groups))
        dag, plan = expand(problem, cost, form.dataflow, form.engine.grid)
        assert all(len(tiling.parts) == 2 for tiling in dag.tilings)
        assert problem.evaluate(dag, plan).cycles == cost.cycles


def block(kind: str, machine: TiledMachine) -> tuple[TiledProblem, ClosedForm]:
    """Four samples of a small block with branches."""
    net = Blueprint(kind, 1)
    if kind == "inception":
        inception(net, net.image(192, 14), MODULES["3a"])
    else:
        bottleneck(net, net.image(64, 14), 64, 1)
    problem = TiledProblem(net.network(), machine, tiled_objective("edp"), batch=4)
    return problem, engine_form(set_network(problem.units, kind), machine, 4, Rules())


def drawn(random: Random, layers: range, batch: int, kinds: str) -> Node:
    """A random tree over layers in their order, cuts of the kinds given."""
    if len(layers) == 1:
        return Leaf(layers[0], batch)
    groups = random.choice([divisor for divisor in range(1, batch + 1) if batch % divisor == 0])
    borders = sorted(random.sample(range(1, len(layers)), random.randint(1, len(layers) - 1)))
    spans = itertools.pairwise([0, *borders, len(layers)])
    inner = tuple(drawn(random, layers[low:high], batch // groups, kinds) for low, high in spans)
    return Cut("T" if random.choice(kinds) == "T" else "S", batch, groups, inner)


@pytest.mark.parametrize("kind", ["inception", "bottleneck"])
@pytest.mark.parametrize("kinds", ["T", "TS"])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_plans_are_never_longer_than_the_closed_form(kind: str, kinds: str, seed: int) -> None:
    """Where nothing binds, plans of random trees of T cuts take its cycles, of T and S cuts no more."""
    problem, form = block(kind, FREE)
    cost = form.attempt(rooted([drawn(Random(seed), range(len(form.network)), 4, kinds)], 4))
    assume(not isinstance(cost, Unfit))
    assert not isinstance(cost, Unfit)
    cycles = problem.evaluate(*expand(problem, cost, form.dataflow, form.engine.grid)).cycles
    assert cycles == cost.cycles if kinds == "T" else cycles <= cost.cycles


@pytest.mark.parametrize("kind", ["inception", "bottleneck"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_plans_of_bands_are_never_longer_than_the_closed_form(kind: str, seed: int) -> None:
    """Where nothing binds, segments that pass on parts of samples take no more cycles as plans than in closed
    form, and exactly as many where their layers run in turn.
    """
    random = Random(seed)
    problem, form = block(kind, FREE)
    layers, kinds = len(form.network), random.choice(["T", "TS"])
    cut = random.randint(1, layers)
    row: list[Node] = []
    for low, high in itertools.pairwise([0, cut, layers] if cut < layers else [0, layers]):
        inner = tuple(Leaf(layer, 1) for layer in range(low, high))
        row.append(Cut("T" if random.choice(kinds) == "T" else "S", 4, 4, inner, random.choice([2, 3, 5])))
    cost = form.attempt(rooted(row, 4))
    assume(not isinstance(cost, Unfit))
    assert not isinstance(cost, Unfit)
    cycles = problem.evaluate(*expand(problem, cost, form.dataflow, form.engine.grid)).cycles
    assert cycles == cost.cycles if kinds == "T" else cycles <= cost.cycles


@pytest.mark.parametrize("model", ["darknet19", "googlenet"])
def test_plans_of_pipelines_are_legal(model: str) -> None:
    """S cuts over samples expand to legal plans with all work done, no more DRAM traffic than the tree's."""
    problem, form = stated(model, 4, EDGE)
    cost = form.evaluate(segmented(form, "S", 2, 4))
    dag, plan = expand(problem, cost, form.dataflow, form.engine.grid)
    evaluation = problem.evaluate(dag, plan)
    assert dag.macs == 4 * sum(
        unit.layer.operator.macs for unit in problem.units if unit.layer.operator.is_mac
    )
    assert evaluation.dram_read_bytes + evaluation.dram_write_bytes <= cost.dram


def test_wide_elements_are_counted() -> None:
    """Elements of two bytes on a machine with room, rates and prices for them cost what single bytes do."""
    bytewise = EDGE.changed(engine=replace(EDGE.engine, register_energy=0.0))
    engine = bytewise.engine
    wide = bytewise.changed(
        engine=replace(
            engine,
            element_bytes=2,
            buffer_bytes=2 * engine.buffer_bytes,
            buffer_read_energy=engine.buffer_read_energy / 2,
            buffer_write_energy=engine.buffer_write_energy / 2,
        ),
        link_rate=2 * EDGE.link_rate,
        dram_rate=2 * EDGE.dram_rate,
        dram_energy=EDGE.dram_energy / 2,
        hop_energy=EDGE.hop_energy / 2,
    )
    costs = []
    for machine in (bytewise, wide):
        _, form = stated("darknet19", 4, machine)
        costs.append(form.evaluate(segmented(form, "S", 2, 4)))
    assert costs[0].cycles == costs[1].cycles
    assert costs[0].energy == pytest.approx(costs[1].energy, rel=1e-12)


def test_layers_beyond_the_chip_are_streamed() -> None:
    """A fully-connected layer of 102 MB on 16 MB of buffers is streamed, and its plan is legal."""
    problem, form = stated("alexnet", 1, load_tiled_machine("set-edge-4x4"))
    cost = form.evaluate(segmented(form, "T", 1, 1))
    assert any(part.leaf is not None and part.leaf.streamed for part in cost.walk())
    dag, plan = expand(problem, cost, form.dataflow, form.engine.grid)
    assert problem.evaluate(dag, plan).cycles > 0


@pytest.mark.parametrize(
    "method",
    [
        "set[shakes=1,beam=1]",
        "set-sa[steps=2]",
        "set-ls",
        "set-lp",
        "set[figures=program,rules=program,shakes=2,beam=1]",
    ],
)
def test_methods_find_legal_plans(method: str) -> None:
    """Every method gives a plan that the evaluator accepts and that no bound contradicts."""
    problem = TiledProblem(resolve_model("darknet19", 1), EDGE, tiled_objective("edp"))
    result = plan_run(lambda: problem, method, Limits(20)).run()
    assert result.status is Status.FEASIBLE, result.message
    assert result.answer is not None
    fresh = problem.evaluate(result.answer.dag, result.answer.plan)
    assert result.key is not None
    assert problem.objective.value(result.key) == pytest.approx(problem.value(fresh), rel=1e-12)
    assert not method.startswith("set-l") or "proven least" in result.message


@pytest.mark.parametrize("method", ["set-lp", "kapla", "chains", "tangram"])
def test_there_is_a_plan_where_no_search_has_ended(method: str) -> None:
    """All layers in turn come first, so that a method that is stopped at its first plan has one."""
    problem = TiledProblem(resolve_model("darknet19", 1), EDGE, tiled_objective("edp"))
    limits = Limits(60)
    result = plan_run(lambda: problem, method, limits, lambda point: stopped(limits, point)).run()
    assert result.status is Status.INTERRUPTED
    assert result.answer is not None
    assert "fits" not in result.message


def stopped(limits: Limits, point: TracePoint) -> None:
    """Stop a search at its first plan."""
    if point.key is not None:
        limits.stop.set()
