"""A model of two phases: every step of the growing cache is searched or bounded."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from calls import caller

import tilewright as tw
from tilewright.formulation.mapping.growth import spanning
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.workloads.families import family_network
from tilewright.workloads.phases import first_length, parse_phases, phase_layers, spread
from tilewright.workloads.selection import select_layers

MODEL, PHASES = "gpt2[tokens=6]", "prefill:2,decode:5"
ATTENTION = ("block1.attention.scores", "block1.attention.key")


def explored(lengths: int) -> Any:
    """Both phases of a few layers on a machine."""
    return tw.explore(
        MODEL,
        "nvdla-256",
        {"levels.CBUF.capacity": "32kB"},
        layers=ATTENTION,
        phases=PHASES,
        lengths=lengths,
        jobs=1,
    )


@pytest.fixture(scope="module")
def few() -> Any:
    """Three of five steps are searched."""
    return explored(3)


def test_all_steps_lie_between_those_that_are_bounded(few: Any) -> None:
    """Each step searched by itself gives a bound that is no lower and a value that is no higher."""
    every = explored(5)
    assert every.record.phases.lengths == [*range(6, 11)]
    assert few.record.phases.lengths == [6, 8, 10]
    for part, whole in zip(few.record.designs, every.record.designs, strict=True):
        assert Fraction(part.bound_exact) <= Fraction(whole.bound_exact)
        assert Fraction(whole.value_exact) <= Fraction(part.value_exact)
    assert every.record.instances == few.record.instances


def test_totals_are_those_of_runs_one_by_one(few: Any) -> None:
    """Value and bound follow from networks of one phase each, added up here by hand."""
    energy, cycles, count = Fraction(0), 0, 0
    for layer in few.record.best.result.layers:
        energy += layer.count * Fraction(layer.metrics.energy_pj_exact)
        cycles += layer.count * layer.metrics.cycles
        count += layer.count
    assert Fraction(few.record.best.value_exact) == energy * cycles
    once = 2 * sum(len(layer.names) for layer in select_layers(family_network(MODEL), ATTENTION))
    step = family_network("gpt2[phase=decode,cached=9]")
    assert count == once + 5 * sum(len(layer.names) for layer in select_layers(step, ATTENTION))


def test_documents_hold_until_lengths_are_left_out(few: Any, tmp_path: Path) -> None:
    """The layers of phases are made anew; `tests/cli/test_mutations.py` changes every other leaf."""
    few.save(tmp_path / "few.json")
    assert tw.check(tmp_path / "few.json").holds
    data = few.to_dict()
    for part in (data, data["best"]["result"]):
        part["phases"]["lengths"] = [6, 10]
    record = ExploreDocument.model_validate(data)
    assert not tw.check(tw.ExplorationDocument(record)).holds


def test_lengths_are_spread_and_cover_every_step() -> None:
    """First and last step are among them; runs in values and in bounds are those of the steps."""
    assert spread(10, 1, 5) == (10,)
    assert spread(10, 3, 5) == (10, 11, 12)
    assert spread(2048, 200, 5) == (2048, 2097, 2147, 2197, 2247)
    phases = parse_phases("decode:200")
    lengths = spread(first_length("mixtral", phases), 200, 4)
    layers = phase_layers("mixtral", phases, lengths, ("block1.*", "words_out"), spanning)
    runs: dict[str, list[int]] = {}
    for layer in layers:
        for name in layer.names:
            counted = runs.setdefault(name[name.index(".block1" if "block1" in name else ".words") :], [0, 0])
            counted[0] += layer.runs
            counted[1] += layer.runs if layer.least_runs is None else layer.least_runs
    assert all(counted == [200, 200] for counted in runs.values())
    step = family_network("mixtral[phase=decode]").layers
    assert len(runs) == sum(layer.name.startswith(("block1.", "words_out")) for layer in step)


@pytest.mark.parametrize(
    ("model", "phases", "message"),
    [
        ("resnet50", "decode:2", "expected a language model"),
        ("gpt2", "decode:0", "cannot read 'decode:0'"),
        ("gpt2", "decode:2,decode:3", "cannot read 'decode:3'"),
        ("gpt2", "encode:2", "expected prefill:1,decode:200"),
        ("gpt2[phase=decode]", "prefill:1,decode:2", "expected phase=prefill"),
    ],
)
def test_phases_that_cannot_be_read_are_one_line(model: str, phases: str, message: str) -> None:
    """A fault of the phases is one line with what was expected."""
    with pytest.raises(InputError, match=message):
        tw.explore(model, "nvdla-256", {"levels.CBUF.capacity": "32kB,64kB"}, phases=phases)


def test_command_line_prints_the_phases(capsys: pytest.CaptureFixture[str]) -> None:
    """Every step is searched where factors are perfect, since costs need not grow there."""
    asked = ("explore", MODEL, "-a", "nvdla-256", "--vary", "levels.CBUF.capacity=32kB,64kB")
    phases = ("--phases", "decode:3", "--lengths", "2", "--factors", "perfect")
    outcome = caller(capsys)(*asked, *phases, "--layers", ATTENTION[0], "--jobs", "1", "-q")
    assert outcome.code == 0, outcome.err
    assert "decode:3: 3 steps, 6 to 8 cached tokens, each searched" in outcome.out
