"""What segments cost at least, against the closed form of random segments."""

from random import Random

import pytest
from effort import effort

from tilewright.formulation.scheduling.tiled.kapla.aggregate import AggregateEstimator
from tilewright.formulation.scheduling.tiled.kapla.chain import loads_of
from tilewright.formulation.scheduling.tiled.kapla.estimate import Estimator
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme, SegmentSpace
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import (
    ClosedForm,
    engine_form,
    program_form,
)
from tilewright.formulation.scheduling.tiled.set.trees.rules import DEFECTS, PUBLISHED, Rules, rules_with
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.workloads.catalog import resolve_model

QUICK = [
    ("resnet", 1, "set-edge-4x4"),
    ("goog", 4, "set-edge-4x4"),
    ("alexnet", 2, "atomic-8x8[engines=3x3]"),
    ("mobilenet-v1:training", 4, "set-edge-4x4"),
]
SLOW = [
    *((name, batch, "set-edge-4x4") for name in ("resnet", "trans_cell", "darknet") for batch in (4, 16)),
    *((name, 4, "set-edge-4x4") for name in ("resnet50", "googlenet", "mobilenet-v2", "vgg16")),
    ("resnet50", 8, "set-cloud-12x12"),
    ("googlenet", 6, "atomic-8x8"),
    ("resnet18", 2, "kapla-16x16"),
    ("resnet18:training", 4, "atomic-8x8"),
    ("googlenet:training", 6, "atomic-8x8[engines=3x3]"),
    ("lstm:training", 2, "set-edge-4x4"),
    ("mlp:training", 8, "kapla-16x16"),
]
ESTIMATORS = {"floors": Estimator, "aggregate": AggregateEstimator}


def form_of(name: str, batch: int, system: str, rules: Rules) -> ClosedForm:
    """The closed form of a network of the published program, or of the catalog on the machine's engines."""
    machine = load_tiled_machine(system)
    if name in ("resnet", "goog", "trans_cell", "darknet"):
        return program_form(program_network(name), machine, batch, rules)
    network = set_network(units_of(resolve_model(name, 1), fuse=True), name)
    return engine_form(network, machine, batch, rules)


def random_scheme(space: SegmentSpace, random: Random) -> SegmentScheme:
    """Any scheme of a space."""
    return random.choice(list(space.schemes(random.choice(space.starts[:-1]))))


def check(
    name: str, batch: int, system: str, rules: Rules, estimate: str, count: int, seed: int, stripes: int = 1
) -> int:
    """Compare estimates with costs; returns how many schemes had both."""
    random = Random(seed)
    form = form_of(name, batch, system, rules)
    splits = random.choice([divisor for divisor in range(1, batch + 1) if batch % divisor == 0])
    space = SegmentSpace(
        form.network, batch // splits, longest_temporal=7, most_down_sets=2000, stripes=stripes
    )
    loads = loads_of(form, splits)
    estimator = ESTIMATORS[estimate](form, loads)
    both = 0
    for _ in range(count):
        scheme = random_scheme(space, random)
        if stripes > 1 and scheme.stripes == 1:
            continue
        bound = estimator.lower_bound(scheme)
        cost = form.segment(scheme.tree, loads)
        if isinstance(cost, Unfit):
            continue
        assert not isinstance(bound, Unfit), f"{scheme} fits, but was thrown out: {bound}"
        assert bound.energy <= cost.energy, scheme
        assert bound.cycles <= cost.cycles, scheme
        assert bound.dram <= cost.dram, scheme
        both += 1
    return both


@pytest.mark.parametrize("estimate", ESTIMATORS)
@pytest.mark.parametrize(("name", "batch", "system"), QUICK)
def test_no_segment_costs_less(name: str, batch: int, system: str, estimate: str) -> None:
    """Random segments cost at least the estimate in energy, cycles and DRAM bytes; none that fits goes."""
    assert check(name, batch, system, Rules(), estimate, effort(60), 1) > effort(60) // 6


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ESTIMATORS)
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize(("name", "batch", "system"), SLOW)
def test_no_segment_costs_less_than_estimated(
    name: str, batch: int, system: str, seed: int, estimate: str
) -> None:
    """The same over thousands of segments on four machines."""
    assert check(name, batch, system, Rules(), estimate, effort(300), seed) > 20


@pytest.mark.parametrize("estimate", ESTIMATORS)
def test_no_segment_in_bands_costs_less(estimate: str) -> None:
    """Random segments that pass on parts of samples cost at least the estimate; none that fits goes."""
    assert (
        check("alexnet", 2, "set-edge-4x4", Rules(), estimate, effort(134), 1, stripes=8) > effort(134) // 16
    )


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ESTIMATORS)
@pytest.mark.parametrize("rules", [Rules(), PUBLISHED])
@pytest.mark.parametrize(
    ("name", "batch", "system"),
    [
        ("resnet", 4, "set-edge-4x4"),
        ("goog", 1, "set-edge-4x4"),
        ("resnet50", 2, "kapla-16x16[engines=8x8,array=16x16,buffer=512]"),
        ("vgg16:training", 2, "kapla-16x16[engines=8x8,array=16x16,buffer=512]"),
        ("alexnet", 2, "atomic-8x8[engines=3x3]"),
    ],
)
def test_no_segment_in_bands_costs_less_than_estimated(
    name: str, batch: int, system: str, rules: Rules, estimate: str
) -> None:
    """The same over thousands of segments, on four machines and under the published program's rules."""
    assert check(name, batch, system, rules, estimate, effort(300), 3, stripes=8) > 20


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ESTIMATORS)
@pytest.mark.parametrize("rules", [PUBLISHED, *(rules_with(defect) for defect in DEFECTS)])
def test_no_segment_costs_less_under_other_rules(rules: Rules, estimate: str) -> None:
    """The estimates hold under every defect of the published program too."""
    for name, batch in (("resnet", 4), ("goog", 2)):
        check(name, batch, "set-edge-4x4", rules, estimate, effort(300), 4)


def test_estimates_are_close() -> None:
    """On segments of ResNet-50 that fit, the estimate is within 20 % of energy and cycles, on average 3 %."""
    form = form_of("resnet", 1, "set-edge-4x4", Rules())
    space, random = SegmentSpace(form.network, 1), Random(5)
    estimator = Estimator(form, 1)
    parts = []
    for _ in range(effort(150)):
        scheme = random_scheme(space, random)
        bound, cost = estimator.lower_bound(scheme), form.segment(scheme.tree, 1)
        if not isinstance(cost, Unfit) and not isinstance(bound, Unfit):
            parts += [bound.energy / cost.energy, bound.cycles / cost.cycles]
    assert min(parts) > 0.8
    assert sum(parts) / len(parts) > 0.97
