"""Training graphs: layers that sum over samples or scatter, and chains over them."""

import itertools

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentSpace
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetLayer, shares
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, rooted
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing, tangram_chain
from tilewright.solvers.scheduling.tiled.kapla.best_first import BestFirst
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.set.trees.enumeration import topological_orders
from tilewright.workloads.blueprint import Blueprint
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.network import Network
from tilewright.workloads.training import training_network


def tiny() -> Network:
    """Two convolutions, the second with a stride, and their backward pass."""
    net = Blueprint("tiny", 1)
    x = net.conv(net.image(4, 12), 16, 3, name="first")
    net.output(net.conv(x, 24, 3, stride=2, name="second"))
    return training_network(net.network())


def form_of(network: Network, batch: int, system: str = "set-edge-4x4") -> ClosedForm:
    """The closed form on the machine's engines."""
    layers = set_network(units_of(network, fuse=True), network.name)
    return engine_form(layers, load_tiled_machine(system), batch, Rules())


def every_chain(form: ClosedForm) -> set[Node]:
    """Every tree that is a chain, written without the space that the methods search."""
    chains = set()
    for splits in divisors(form.batch):
        batch = form.batch // splits
        for order in topological_orders(form.network):
            for borders in itertools.product((False, True), repeat=len(order) - 1):
                cuts = [0, *(i + 1 for i, border in enumerate(borders) if border), len(order)]
                ways = []
                for low, high in itertools.pairwise(cuts):
                    row = order[low:high]
                    kinds = "T" if len(row) == 1 else "ST"
                    ways.append([segment(row, k, g, batch) for k in kinds for g in divisors(batch)])
                for children in itertools.product(*ways):
                    chains.add(rooted(list(children), batch * splits, splits))
    return chains


def segment(row: tuple[int, ...], kind: str, groups: int, batch: int) -> Node:
    """Leaves under one cut; a lone leaf in one group stands alone."""
    if len(row) == 1 and groups == 1:
        return Leaf(row[0], batch)
    leaves = tuple(Leaf(layer, batch // groups) for layer in row)
    return Cut("S" if kind == "S" else "T", batch, groups, leaves)


def divisors(number: int) -> list[int]:
    """All of them."""
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def test_chains_of_a_training_graph_are_those_of_the_enumeration() -> None:
    """Best-first proves the least of all chains of all kinds of layers; heuristics are no better."""
    form = form_of(tiny(), 2)
    costs = (form.attempt(tree) for tree in every_chain(form))
    least = min(form.value(cost.energy, cost.cycles) for cost in costs if not isinstance(cost, Unfit))
    result = BestFirst(form, Slicing(orders="all")).solve()
    assert result.proven
    assert result.bound == pytest.approx(least, rel=1e-12)
    assert tree_bounds(form).value <= least
    for chain in (KaplaSolver(form).solve(), tangram_chain(form)):
        assert chain is not None
        assert form.value(chain.energy, chain.cycles) >= least * (1 - 1e-12)


@pytest.mark.parametrize("name", ["alexnet", "mobilenet-v1", "resnet50", "googlenet", "mlp", "lstm"])
def test_the_work_is_that_of_the_operators(name: str) -> None:
    """Multiply-accumulates of all layers, strided error propagation included, are the operators' own."""
    units = units_of(resolve_model(f"{name}:training", 1), fuse=True)
    layers = set_network(units, name).layers
    for layer, unit in zip(layers, units, strict=True):
        if layer.is_mac:
            assert layer.operations == unit.layer.operator.macs, layer.name
    assert sum(operator.is_summed for operator in layers) == sum(
        operator.layer.source == "Update" for operator in units
    )


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_traffic_of_an_update_element_by_element(runs: int) -> None:
    """An update through DRAM reads what its shares' results need of input and gradient, share by share where
    shares differ, and stores its sums once for all runs.
    """
    form, batch = form_of(tiny(), 4), 2
    number = form.network.index["second.update"]
    layer = form.network.layers[number]
    for partition in form.engine.menu(number, batch, 4):
        through_dram = (-1,) * len(layer.producers)
        leaf_cost = form.engine.partitioned(number, batch, 0, True, runs, through_dram, partition)
        assert leaf_cost is not None
        assert int(leaf_cost.counts[1]) == fetched(layer, batch, partition.parts) + layer.output_bytes // runs


def fetched(layer: SetLayer, batch: int, parts: tuple[int, int, int, int]) -> int:
    """Bytes that all shares read: each part of the input once per share that differs in what it reads."""
    k, b, h, w = (
        list(itertools.pairwise(shares(size, count)))
        for size, count in zip((layer.channels, batch, layer.rows, layer.columns), parts, strict=True)
    )
    assert len(b) == 1
    total = 0
    for low, high in k:
        if high > low:
            total += (high - low) * layer.taps_rows * layer.taps_columns * batch  # shared by all rows
    for _ in k:
        for low, high in h:
            for left, right in w:
                if right > left:
                    read = {row // layer.stride_rows for row in range(low, high)}
                    total += len(read) * layer.input_rows * layer.input_columns * batch
    return total


def test_an_error_scatters_through_a_stride() -> None:
    """Rows of the gradient that a box of results needs are those of which some tap lands in it."""
    form = form_of(tiny(), 1)
    number = form.network.index["second.error"]
    layer = form.network.layers[number]
    assert layer.spread
    for partition in form.engine.menu(number, 1, 4):
        leaf_cost = form.engine.partitioned(number, 1, 0, False, 1, (-1,) * len(layer.producers), partition)
        assert leaf_cost is not None
        _, _, h, w = partition.parts
        read = 0
        for low, high in itertools.pairwise(shares(layer.rows, h)):
            for left, right in itertools.pairwise(shares(layer.columns, w)):
                read += hit(layer, low, high, True) * hit(layer, left, right, False) * layer.inputs
        assert int(leaf_cost.counts[1]) == read + layer.weight_bytes


def hit(layer: SetLayer, low: int, high: int, rows: bool) -> int:
    """Positions of the gradient of which some tap lands between two borders."""
    stride, taps, size = (
        (layer.stride_rows, layer.taps_rows, layer.input_rows)
        if rows
        else (layer.stride_columns, layer.taps_columns, layer.input_columns)
    )
    return sum(any(low <= at * stride + tap < high for tap in range(taps)) for at in range(size))


def test_a_training_graph_gets_a_plan() -> None:
    """KAPLA's chain of a training graph expands to a plan that the common evaluator takes."""
    problem = TiledProblem(tiny(), load_tiled_machine("set-edge-4x4"), tiled_objective("edp"), batch=1)
    result = plan_run(lambda: problem, "kapla", Limits(seconds=60)).run()
    assert result.answer is not None
    assert result.evaluation is not None
    assert result.evaluation.cycles > 0


def test_many_states_leave_the_networks_own_order() -> None:
    """A training graph with too many down-sets is cut in its own order, and every chain ends at the whole."""
    network = form_of(resolve_model("resnet18:training", 1), 1).network
    space = SegmentSpace(network, 1, most_down_sets=1000)
    assert space.orders == "own"
    assert space.starts[-1] == (1 << len(network)) - 1
