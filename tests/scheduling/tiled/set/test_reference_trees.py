"""Trees of SET's released program against its own figures.

``tests/data/set_schedules.json`` holds the output of the released program (SET-ISCA2023, commit a7bd739)
on 4 x 4 tiles: per scheme its tree as text, totals, and the cost of every node.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tilewright.formulation.scheduling.tiled.set.leaf.partition import parse_partition
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, program_form
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.rules import DEFECTS, PUBLISHED, Rules, rules_with
from tilewright.formulation.scheduling.tiled.set.trees.tree import leaves
from tilewright.formulation.scheduling.tiled.set.trees.tree_text import format_tree, parse_tree
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine

DATA = json.loads((Path(__file__).parents[3] / "data" / "set_schedules.json").read_text())
CASES = [(run, mode) for run in DATA["runs"] for mode in run["modes"]]


def form_of(run: dict[str, Any], rules: Rules) -> ClosedForm:
    """The closed form for one run of the program."""
    machine = load_tiled_machine(f"set-edge-{run['x']}x{run['y']}")
    return program_form(program_network(run["net"]), machine, run["batch"], rules)


def faults(cost: NodeCost, nodes: list[dict[str, Any]], form: ClosedForm) -> list[str]:
    """Figures of nodes that differ from the program's."""
    wrong = []
    for got, want in zip(cost.walk(), nodes, strict=True):
        name = want.get("layer", want.get("cut"))
        exact = {"T": got.cycles, "hops": got.hops, "dram": got.dram, "max_link": got.busiest_link}
        near = {"E": got.energy}
        if got.leaf is not None:
            layer, batch = form.network.layers[got.node.layer], got.node.batch  # type: ignore[union-attr]
            exact |= {"buf_max": int(got.buffer.max()), "wgt": layer.weight_bytes}
            exact |= {"ifm": layer.input_bytes * batch, "ofm": layer.output_bytes * batch}
            near |= {"ubuf": got.parts[0], "buf": got.parts[1], "bus": got.parts[2], "mac": got.parts[3]}
            if str(got.leaf.partition) != want["part"]:
                wrong.append(f"{name}: partition {got.leaf.partition}, expected {want['part']}")
        wrong += [
            f"{name}: {key} {value}, expected {want[key]}"
            for key, value in exact.items()
            if value != want[key]
        ]
        for key, value in near.items():
            if value != pytest.approx(want[key], rel=1e-5, abs=1e-9):
                wrong.append(f"{name}: {key} {value}, expected {want[key]}")
    return wrong


@pytest.mark.parametrize(("run", "mode"), CASES, ids=[f"{run['net']}-{mode}" for run, mode in CASES])
def test_every_node_of_a_reference_tree(run: dict[str, Any], mode: str) -> None:
    """Hops, DRAM, busiest link, buffers and cycles of every node are the program's, energies within 1e-5."""
    form = form_of(run, PUBLISHED)
    want = run["modes"][mode]
    tree = parse_tree(want["ra_tree"], form.network, run["batch"])
    evaluation = form.evaluate(tree)
    assert not faults(evaluation, want["nodes"], form)
    assert evaluation.cycles == want["Latency"]
    assert evaluation.energy == pytest.approx(want["Energy"], rel=1e-5)


@pytest.mark.parametrize(("run", "mode"), CASES, ids=[f"{run['net']}-{mode}" for run, mode in CASES])
def test_text_of_a_reference_tree(run: dict[str, Any], mode: str) -> None:
    """A tree's text is written as it was read."""
    network = program_network(run["net"])
    text = run["modes"][mode]["ra_tree"]
    assert format_tree(parse_tree(text, network), network).strip() == text.strip()


def test_given_partitions_cost_what_the_search_finds() -> None:
    """A tree with the program's partitions given, rather than searched for, costs the same."""
    run = DATA["runs"][1]
    want = run["modes"]["SET"]
    form = form_of(run, PUBLISHED)
    for node in want["nodes"]:
        if "layer" in node:
            form.partitions[form.network.index[node["layer"]]] = parse_partition(node["part"])
    evaluation = form.evaluate(parse_tree(want["ra_tree"], form.network))
    assert not faults(evaluation, want["nodes"], form)


@pytest.mark.parametrize(
    ("name", "layers", "operations", "weights"),
    [
        ("densenet", 126, 2_834_161_664, 7_894_208),
        ("gnmt", 82, 64_000_000, 64_000_000),
        ("lstm", 74, 64_000_000, 64_000_000),
        ("zfnet", 11, 2_476_704_896, 107_616_032),
        ("ires_block", 9, 635_980_800, 519_168),
        ("pnas", 603, 24_937_400_112, 85_884_000),
    ],
)
def test_networks_of_the_program(name: str, layers: int, operations: int, weights: int) -> None:
    """Every operand of a layer comes from somewhere, once; PNASNet's paper has 25.0 G and 86.1 M."""
    network = program_network(name)
    assert len(network) == layers
    assert sum(set_layer.operations for set_layer in network.layers if set_layer.is_mac) == operations
    assert sum(set_layer.weight_bytes for set_layer in network.layers) == pytest.approx(weights, rel=1e-5)
    for layer in network.layers:
        assert layer.external + sum(p.channels for p in layer.producers) == layer.inputs * layer.operands


@pytest.mark.parametrize("defect", DEFECTS)
def test_defects_are_off_by_default_and_named(defect: str) -> None:
    """Each defect of the program is a rule by its name, and none of them holds by default."""
    assert not getattr(Rules(), defect)
    assert getattr(rules_with(defect), defect)
    assert getattr(PUBLISHED, defect)


def test_split_root_loads_weights_for_every_group() -> None:
    """Under a root T cut in two groups weights are loaded twice; by the program's rule once."""
    run = DATA["runs"][0]
    machine = load_tiled_machine("set-edge-4x4")
    network = program_network(run["net"])
    order = tuple(range(len(network)))
    text = "T 2/2\n" + "".join(f"\t{network.layers[number].name} 1\n" for number in order)
    weights = sum(layer.weight_bytes for layer in network.layers)
    by_paper, by_program = (
        program_form(network, machine, 2, rules).evaluate(parse_tree(text, network)).dram
        for rules in (Rules(), rules_with("split_root_weights_once"))
    )
    assert by_paper - by_program == pytest.approx(weights, rel=0.02)


def test_concatenations_are_free_only_by_the_defect() -> None:
    """A convolution behind an inception module receives four parts, by the program's rule the first alone."""
    network = program_network("goog")
    machine = load_tiled_machine("set-edge-4x4")
    number = network.index["inception_3b_1x1"]
    parts = [network.layers[producer.layer] for producer in network.layers[number].producers]
    assert len(parts) == 4
    lines = ["T 1/1"]
    for layer in network.layers:
        inside = layer.name in ("inception_3a_pool_proj", "inception_3b_1x1")
        if layer.name == "inception_3a_pool_proj":
            lines.append("\tT 1/1")
        lines.append(("\t\t" if inside else "\t") + f"{layer.name} 1")
    order = [line.strip() for line in lines]
    assert order.index("inception_3b_1x1 1") == order.index("inception_3a_pool_proj 1") + 1
    tree = parse_tree("\n".join(lines), network)
    dram, hops = {}, {}
    for name, rules in (("paper", Rules()), ("program", rules_with("free_concatenation"))):
        cost = next(
            part
            for part in program_form(network, machine, 1, rules).evaluate(tree).walk()
            if part.leaf is not None and next(leaves(part.node)).layer == number
        )
        dram[name], hops[name] = cost.dram, cost.hops
    assert dram["paper"] == dram["program"]
    assert hops["paper"] > hops["program"]
