"""Widths that a model states: held, moved and paid for in bits, in mappings, bounds and documents."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from brute import every_mapping
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators
from particulars import particular
from simulator import cycles, simulate

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.mapping.operator import OperatorRecord
from tilewright.solvers.mapping.explore.bounds import LayerBounds
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import elementwise, gemm
from tilewright.workloads.widths import Kind, checked_widths, parse_widths, with_widths

HIERARCHY = cost_model("hierarchy")
BITS = (4, 8, 16, 32)
TEXTS = ("w4", "a8", "w4a16c8s32", "a4s32", "w32a4s8", "s16")


@st.composite
def stated(draw: st.DrawFn, most: int = 32) -> Operator:
    """Small layers that state widths."""
    operator = draw(operators(kinds=("conv", "gemm", "matmul", "pool", "elementwise"), most=most))
    kind, text = draw(st.sampled_from(list(Kind))), draw(st.sampled_from(TEXTS))
    return with_widths(operator, {}, kind, parse_widths(text))


def bits_at(operator: Operator, engine: Engine, index: int, name: str) -> int:
    """Bits of a tensor's element at a level, by the rules of the manual."""
    tensor, level = operator.tensor(name), engine.levels[index]
    bits = tensor.bits if index == 0 else tensor.sum_bits or tensor.bits
    return bits or level.widths.get(tensor.role, engine.element_bits)


def as_bits(operator: Operator, engine: Engine) -> Engine:
    """The machine with other widths and nothing else: sizes and rates that do not follow are left out."""
    levels = []
    for index, level in enumerate(engine.levels):
        widths = {tensor.role: bits_at(operator, engine, index, tensor.name) for tensor in operator.tensors}
        levels.append(replace(level, widths=dict(level.widths) | widths))
    return replace(engine, levels=tuple(levels))


@settings(max_examples=effort(30), deadline=None)
@given(st.data())
def test_energy_is_in_proportion_to_the_bits_moved(data: st.DataObject) -> None:
    """Accesses are those of the plain layer; each costs its bits' share of the machine's energy, no more."""
    operator = data.draw(stated())
    plain = replace(operator, tensors=tuple(replace(t, bits=None, sum_bits=None) for t in operator.tensors))
    machine = data.draw(hierarchies())
    engine = data.draw(
        st.sampled_from([machine, particular(machine, lambda o: data.draw(st.sampled_from(o)))])
    )
    mapping = data.draw(mappings(plain, engine, data.draw(st.booleans()), data.draw(st.booleans())))
    told, silent = (evaluate_mapping(layer, engine, HIERARCHY, mapping) for layer in (operator, plain))
    assert told.accesses == silent.accesses
    names = [level.name for level in engine.levels]
    change = Fraction(0)
    for access in silent.accesses:
        index = names.index(access.level)
        level, role = engine.levels[index], operator.tensor(access.tensor).role
        before = level.widths.get(role, engine.element_bits)
        share = Fraction(bits_at(operator, engine, index, access.tensor), before) - 1
        reads, writes = access.reads, access.fills + access.updates
        change += share * (level.read_energy_of(role) * reads + level.write_energy_of(role) * writes)
    assert told.energy == silent.energy + change
    walked = simulate(operator, as_bits(operator, engine), mapping)
    assert told.cycles == cycles(as_bits(operator, engine), operator, walked)


@settings(max_examples=effort(20), deadline=None)
@given(st.data())
def test_a_buffer_holds_as_many_bits_as_before(data: st.DataObject) -> None:
    """A level without partitions overflows exactly where its tensors' bits exceed its own."""
    operator, machine = data.draw(stated()), data.draw(hierarchies())
    levels = tuple(replace(level, partitions={}, bank=None) for level in machine.levels)
    engine = replace(machine, levels=levels)
    mapping = data.draw(mappings(operator, engine, data.draw(st.booleans()), False))
    told = evaluate_mapping(operator, engine, HIERARCHY, mapping)
    full = {
        line.partition(":")[0].removeprefix("capacity of ").partition(" in units")[0]
        for line in told.violations
        if line.startswith("capacity of ")
    }
    walked = simulate(operator, as_bits(operator, engine), mapping)
    over = set()
    for index, level in enumerate(engine.levels):
        held = sum(
            walked.counts[level.name, tensor.name].tile * bits_at(operator, engine, index, tensor.name)
            for tensor in operator.tensors
        )
        if level.capacity is not None and held > level.capacity * engine.capacity_element_bits(level):
            over.add(level.name)
    assert full == over


@pytest.mark.parametrize("text", TEXTS)
def test_the_optimum_is_that_of_plain_enumeration(text: str) -> None:
    """The proven optima of a small product are the least of all mappings, each evaluated by itself."""
    operator = with_widths(gemm(m=2, n=3, k=4), {}, Kind.ACTIVATIONS, parse_widths(text))
    engine = Engine(
        "small",
        "hierarchy",
        16,
        Fraction(1, 3),
        Fraction(1000),
        (
            MemoryLevel("DRAM", None, Fraction(40), Fraction(50), read_bandwidth=Fraction(2)),
            MemoryLevel("SPM", 7, Fraction(3), Fraction(2), shared_bandwidth=Fraction(3, 2)),
            MemoryLevel("REG", 4, Fraction(1), Fraction(1)),
        ),
    )
    costs = {
        (evaluation.energy, evaluation.cycles)
        for mapping in every_mapping(operator, engine, True)
        if not (evaluation := evaluate_mapping(operator, engine, HIERARCHY, mapping)).violations
    }
    for objective in ("energy", "cycles", "edp"):
        goal = parse_objective(objective)
        least = min(goal.key(energy, cycles) for energy, cycles in costs)
        result = solve(layer_problem(operator, engine, goal, factors="perfect"))
        assert result.status is Status.OPTIMAL
        assert result.evaluation is not None
        assert goal.key(result.evaluation.energy, result.evaluation.cycles) == least


FILE = """\
clock_mhz: 100
compute: {{mac_energy: 1, element_bits: 16{compute}}}
levels:
  - {{name: DRAM, energy: 64, word_bits: 64, bandwidth: 8 B/cycle}}
  - {{name: SPM, capacity: 96 B, energy: 8, word_bits: 64, bandwidth: {{read: 4 B/cycle, write: 2 B/cycle}}}}
"""


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
def test_a_machine_file_with_the_same_widths_agrees(objective: str, tmp_path: Path) -> None:
    """A model's widths on a plain machine are a plain model on a machine whose words have these widths."""
    plain, wide = tmp_path / "plain.yaml", tmp_path / "wide.yaml"
    plain.write_text(FILE.format(compute=""))
    wide.write_text(FILE.format(compute=", widths: {inputs: 8, weights: 4, outputs: 32}"))
    layer, goal = gemm(m=6, n=8, k=10), parse_objective(objective)
    told = with_widths(layer, {}, Kind.CACHE, parse_widths("w4a8c32"))
    ours = solve(layer_problem(told, load_engine(plain), goal))
    theirs = solve(layer_problem(layer, load_engine(wide), goal))
    assert (ours.status, ours.key) == (Status.OPTIMAL, theirs.key)
    assert (
        fitted(load_engine(plain), told).levels[0].read_energies == load_engine(wide).levels[0].read_energies
    )


def test_two_values_of_four_bits_are_one_byte() -> None:
    """Half of the bytes of 8-bit values move, and twice as many fit."""
    engine = Engine(
        "bytes",
        "hierarchy",
        8,
        Fraction(0),
        Fraction(1000),
        (
            MemoryLevel("DRAM", None, Fraction(8), Fraction(8)),
            MemoryLevel("GLB", 8, Fraction(0), Fraction(0)),
        ),
    )
    goal = parse_objective("energy")
    copies = {
        bits: with_widths(
            elementwise(shape=(4, 4), operands=1), {}, Kind.ACTIVATIONS, parse_widths(f"a{bits}")
        )
        for bits in (4, 8)
    }
    energies = {bits: solve(layer_problem(told, engine, goal)).evaluation for bits, told in copies.items()}
    assert energies[4] is not None
    assert energies[8] is not None
    assert (energies[4].energy, energies[8].energy) == (2 * 16 * 4, 2 * 16 * 8)
    fits = {bits: fitted(engine, told).levels[1] for bits, told in copies.items()}
    assert fits[4].widths == {Role.INPUT: 4, Role.OUTPUT: 4}
    assert (fits[4].capacity, fits[4].counted_bits) == (8, 8)


def test_a_fitted_machine_is_itself() -> None:
    """Fitting twice changes nothing, and layers that state no width have the machine that was given."""
    operator = with_widths(gemm(m=2, n=3, k=4), {}, Kind.CACHE, parse_widths("w4a16c8s32"))
    engine = particular(_plain(), lambda options: options[-1])
    assert fitted(fitted(engine, operator), operator) == fitted(engine, operator) != engine
    assert fitted(engine, gemm(m=2, n=3, k=4)) is engine
    outer, inner = fitted(engine, operator).levels
    assert (outer.widths[Role.WEIGHT], outer.widths[Role.INPUT], outer.widths[Role.OUTPUT]) == (4, 16, 8)
    assert inner.widths[Role.OUTPUT] == 32


def _plain() -> Engine:
    levels = (
        MemoryLevel("DRAM", None, Fraction(40), Fraction(50)),
        MemoryLevel("SPM", 64, Fraction(3), Fraction(2)),
    )
    return Engine("plain", "hierarchy", 16, Fraction(1), Fraction(1000), levels)


def test_tensors_of_one_role_have_one_width() -> None:
    """Two inputs of different widths are refused, since machines tell roles apart only."""
    operator = elementwise(shape=(4, 4), operands=2)
    first, second, out = operator.tensors
    mixed = replace(operator, tensors=(replace(first, bits=4), replace(second, bits=8), out))
    with pytest.raises(InputError, match="expected one for each role"):
        layer_problem(mixed, _plain(), parse_objective("energy"))


def test_a_record_keeps_widths_and_older_records_have_none() -> None:
    """Documents state widths where the model does, and look as before where it does not."""
    plain = gemm(m=2, n=3, k=4)
    operator = with_widths(plain, {}, Kind.ACTIVATIONS, parse_widths("w4s32"))
    record = OperatorRecord.of(operator)
    assert record.build("here") == operator != plain
    assert OperatorRecord.model_validate(record.model_dump()) == record
    assert [tensor.get("bits") for tensor in record.model_dump()["tensors"]] == [None, 4, None]
    assert all("bits" not in tensor for tensor in OperatorRecord.of(plain).model_dump()["tensors"])
    assert repr(operator) == repr(plain)


def test_bounds_of_explored_machines_follow_the_widths() -> None:
    """What is compulsory on a machine is of the model's bits: it stays below the optimum at 4 bits."""
    operator = with_widths(gemm(m=4, n=6, k=8), {}, Kind.ACTIVATIONS, parse_widths("w4a4s4"))
    engine, goal = _plain(), parse_objective("energy")
    bounds = LayerBounds(operator, [engine], goal, "hierarchy", None, comparing=True)
    result = solve(layer_problem(operator, engine, goal))
    assert result.key is not None
    assert 0 < bounds.low[0] <= float(result.key)


def test_texts_of_widths_have_one_form() -> None:
    """Letters may come in any sequence; the form that documents have is one."""
    assert checked_widths("c8w4") == "w4c8"
    assert checked_widths("machine") == "machine"
    assert parse_widths("s32").sums == 32
    for text in ("", "w", "w3", "x4", "w4,a8", "W4", "w4 a8", "w64"):
        with pytest.raises(ValueError, match="expected letters"):
            parse_widths(text)
