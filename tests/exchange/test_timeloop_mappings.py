"""Mappings to Timeloop's directives and back: the 24 that Timeloop has counted, random ones, and bad ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping as MappingABC
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators
from reference import TIMELOOP, load, mapping
from timeloop_counter import Nest

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import Evaluation, evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout
from tilewright.report.exchange.bundle import Bundle, Settings
from tilewright.report.exchange.convert import convert
from tilewright.report.exchange.losses import Ledger
from tilewright.report.exchange.mapping import (
    timeloop_read_mapping,
    timeloop_read_problem,
    timeloop_write_mapping,
    timeloop_write_problem,
)
from tilewright.report.exchange.mapping.timeloop_write_mapping import canonical, directives
from tilewright.report.exchange.mapping.timeloop_write_problem import letters
from tilewright.report.exchange.outputs import NotStatedError
from tilewright.report.exchange.source import Field, read_source
from tilewright.report.records.mapping.mapping_file import StoredMapping, render_mapping
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d

ROWS = load("timeloop_counts.json", "mappings")
LEVELS = ["DRAM", "SPM", "RF"]


def convolution(row: MappingABC[str, Any]) -> Operator:
    """The layer of a row."""
    n, k, c, p, q, r, s = row["bounds"]
    return conv2d(n=n, k=k, c=c, p=p, q=q, r=r, s=s, stride=row["stride"])


def read_back(data: list[dict[str, Any]], operator: Operator, engine: Engine) -> Mapping:
    """The mapping of directives."""
    bundle = Bundle("test", Settings(), Ledger(), engine=engine, layers=[("layer", operator)])
    timeloop_read_mapping.read(Field("test", {"mapping": data}), bundle)
    assert not bundle.ledger.losses
    return bundle.mappings[0].mapping


def texts_of(stored: StoredMapping) -> dict[str, str]:
    """Problem and mapping as Timeloop's files, by their names."""
    assert stored.operator is not None
    layers = [(stored.name, stored.operator)]
    bundle = Bundle("test", Settings(), Ledger(), engine=stored.engine, layers=layers, mappings=[stored])
    written = [*timeloop_write_problem.write(bundle), *timeloop_write_mapping.write(bundle)]
    return {output.name: output.text for output in written}


def per_instance(evaluation: Evaluation, pes: int) -> dict[str, list[float]]:
    """Reads, fills, updates and tile by level and tensor."""
    per_instance: dict[str, list[float]] = {}
    for row in evaluation.accesses:
        instances = pes if row.level == "RF" else 1
        counts = [count / instances for count in (row.reads, row.fills, row.updates)]
        per_instance[f"{row.level} {row.tensor}"] = [*counts, row.tile]
    return per_instance


@pytest.mark.parametrize("row", ROWS, ids=[str(index) for index in range(24)])
def test_the_24_mappings(row: MappingABC[str, Any], tmp_path: Path) -> None:
    """Written as text and read back they are the same; the text by itself has the reference's counts."""
    operator = convolution(row)
    own = mapping(operator, row["tiling"], row["orders"])
    texts = texts_of(StoredMapping("layer", own, operator, TIMELOOP))
    bundle = Bundle("test", Settings(), Ledger(), engine=TIMELOOP)
    for (name, text), reader in zip(
        texts.items(), (timeloop_read_problem, timeloop_read_mapping), strict=True
    ):
        (tmp_path / name).write_text(text)
        reader.read(read_source(tmp_path / name), bundle)
    assert not bundle.ledger.losses
    [back] = bundle.mappings
    assert back.mapping == canonical(own, operator, TIMELOOP)
    assert back.operator is not None
    again = evaluate_mapping(back.operator, TIMELOOP, cost_model("hierarchy"), back.mapping)
    assert per_instance(again, math.prod(row["tiling"]["Spatial"])) == row["counts"]
    assert again.cycles == row["cycles"]
    nest = Nest("---\n".join(texts.values()), LEVELS, {"inter_pe_spatial": "SPM"})
    counted = {
        f"{level} {space}": nest.counts(space, index)
        for (index, level), space in itertools.product(enumerate(LEVELS), "IWO")
    }
    assert counted == row["counts"]


def test_all_files_of_a_mapping(tmp_path: Path) -> None:
    """A mapping file goes out as architecture, energies, problem and mapping, and comes back from these."""
    row = ROWS[0]
    operator = convolution(row)
    own = mapping(operator, row["tiling"], row["orders"])
    path = tmp_path / "own.yaml"
    path.write_text(render_mapping(StoredMapping("layer", own, operator, TIMELOOP)))
    paths = []
    for output in convert([str(path)], "timeloop").outputs:
        (tmp_path / output.name).write_text(output.text)
        paths.append(str(tmp_path / output.name))
    [back] = convert(paths, "tilewright").bundle.mappings
    assert back.mapping == canonical(own, operator, TIMELOOP)
    assert back.engine is not None
    assert back.operator is not None
    again = evaluate_mapping(back.operator, back.engine, cost_model("hierarchy"), back.mapping)
    assert per_instance(again, math.prod(row["tiling"]["Spatial"])) == row["counts"]


def in_timeloops_words(row: MappingABC[str, Any], *, split: bool) -> list[dict[str, Any]]:
    """A row as Timeloop 3 has it: spatial loops at the level outside, orders innermost first."""
    dims = "NKCPQRS"
    directives: list[dict[str, Any]] = []
    for level, site in (("RF", "RF"), ("SPM", "Spatial"), ("SPM", "SPM"), ("DRAM", "DRAM")):
        factors = " ".join(f"{dim}={count}" for dim, count in zip(dims, row["tiling"][site], strict=True))
        order = row["orders"].get(site, dims)[::-1]
        kind = "spatial" if site == "Spatial" else "temporal"
        entry = {"target": level, "type": kind, "factors": factors, "permutation": order}
        directives.append(entry | ({"split": 7} if kind == "spatial" and split else {}))
    return directives


def test_older_words_are_the_same_mapping() -> None:
    """Spatial directives may name the level outside, and levels may say nothing of what they keep."""
    for row in ROWS:
        operator = convolution(row)
        expected = canonical(mapping(operator, row["tiling"], row["orders"]), operator, TIMELOOP)
        assert read_back(in_timeloops_words(row, split=True), operator, TIMELOOP) == expected


def test_two_directions_of_an_array() -> None:
    """The first loops of the permutation lie on X, as many as the split says, and are written so again."""
    fan = Fanout((ArrayAxis("PE_X", 16), ArrayAxis("PE_Y", 16)))
    engine = replace(
        TIMELOOP, levels=(TIMELOOP.levels[0], replace(TIMELOOP.levels[1], fanout=fan), TIMELOOP.levels[2])
    )
    operator = conv2d(k=8, c=4, r=1, s=3, p=1, q=1)
    data: list[dict[str, Any]] = [
        {
            "target": "inter_PE_spatial",
            "type": "spatial",
            "factors": "K8 C4 S3",
            "permutation": "KSC",
            "split": 1,
        }
    ]
    reading = read_back(data, operator, engine)
    axes = {step.node.dim: getattr(step.node, "axis", None) for step in reading.loops(operator)}
    assert axes == {"K": "PE_X", "S": "PE_Y", "C": "PE_Y"}
    [written] = [
        directive for directive in directives(reading, operator, engine) if directive["type"] == "spatial"
    ]
    assert (written["split"], written["permutation"][:3]) == (1, "KSC")
    assert read_back(directives(reading, operator, engine), operator, engine) == reading
    fan = Fanout((ArrayAxis("PE_Y", 256),))
    only = replace(engine, levels=(engine.levels[0], replace(engine.levels[1], fanout=fan), engine.levels[2]))
    reading = read_back([{**data[0], "split": 0}], operator, only)
    [written] = [
        directive for directive in directives(reading, operator, only) if directive["type"] == "spatial"
    ]
    assert (written["target"], written["split"]) == ("inter_PE_spatial", 0)


@settings(max_examples=effort(25), deadline=None)
@given(st.data())
def test_random_mappings_round_trip(data: st.DataObject) -> None:
    """What directives can say comes back the same and costs the same; of the rest, none is written."""
    operator = data.draw(operators())
    engine = data.draw(hierarchies())
    perfect, uneven = data.draw(st.booleans()), data.draw(st.integers(0, 3)) == 0
    own = data.draw(mappings(operator, engine, uneven=uneven, perfect=perfect))
    try:
        expected = canonical(own, operator, engine)
        text = yaml.safe_dump(directives(own, operator, engine))
    except NotStatedError:
        assume(False)
    model = cost_model("hierarchy")
    names = letters(operator)
    renamed = any(dim != letter for dim, letter in names.items())
    assume(not renamed)
    back = read_back(yaml.safe_load(text), operator, engine)
    assert back == expected
    assert evaluate_mapping(operator, engine, model, back) == evaluate_mapping(operator, engine, model, own)


def small(directive: dict[str, Any], *others: dict[str, Any]) -> Mapping:
    """A mapping of a small layer, by directives."""
    return read_back([directive, *others], conv2d(k=7, c=1, r=1, s=1, p=1, q=1), TIMELOOP)


def test_the_last_round_may_be_shorter() -> None:
    """``K=4,3`` of tiles of 2 is 7 outputs in 4 rounds, the last of one; a tile is what is left inside."""
    outer = {"target": "DRAM", "type": "temporal", "factors": "K=4", "permutation": "K"}
    inner = {"target": "RF", "type": "temporal", "factors": "K=2,1", "permutation": "K"}
    operator = conv2d(k=7, c=1, r=1, s=1, p=1, q=1)
    loops = [(step.node.tile, step.trip) for step in small(outer, inner).loops(operator)]
    assert loops == [(2, 4), (1, 2)]


def test_zero_is_the_whole_dimension() -> None:
    """A factor of 0 stands for all iterations, as Timeloop reads it."""
    reading = small({"target": "RF", "type": "temporal", "factors": "K0", "permutation": "K"})
    assert reading == small({"target": "RF", "type": "temporal", "factors": "K=7", "permutation": "K"})


BAD: list[tuple[str, str]] = [
    ("{target: RF, type: temporal, factors: K=8, permutation: K}", "the factors of K make 8 iterations"),
    ("{target: RF, type: temporal, factors: 'K=4,5', permutation: K}", "a last round of 1 to 4"),
    ("{target: RF, type: temporal, factors: K=x, permutation: K}", "cannot read 'K=x'"),
    ("{target: RF, type: temporal, factors: M=7, permutation: M}", "unknown dimension 'M'"),
    ("{target: RF, type: temporal, factors: K=7, permutation: KK}", "K stands twice"),
    ("{target: L7, type: temporal, factors: K=7, permutation: K}", "unknown name 'L7'"),
    ("{target: RF, type: spatial, factors: K=7, permutation: K}", "has no array below it"),
    ("{target: RF, type: waving, factors: K=7, permutation: K}", "unknown name 'waving'"),
    ("{target: RF, type: datatype, keep: [Inputs, Psums], bypass: []}", "unknown data space 'Psums'"),
    ("{target: RF, type: datatype, keep: [Inputs], bypass: [Inputs, W, O]}", "are kept and bypassed"),
    ("{target: RF, type: datatype, keep: [Inputs], bypass: [W]}", "tells of O neither that it is kept"),
    ("{target: RF, factors: K=7, permutation: K}", "missing, expected one of"),
    ("[1, 2]", "expected a mapping of fields"),
    ("{target: inter_pe_spatial, type: temporal, factors: K=7}", "an array has no loops in time"),
]


@pytest.mark.parametrize(("line", "told"), BAD, ids=[told for _, told in BAD])
def test_bad_directives_are_one_line(line: str, told: str, tmp_path: Path) -> None:
    """What is wrong is told with the file and the line."""
    path = tmp_path / "bad.yaml"
    path.write_text(f"# a mapping\nmapping:\n- {line}\n")
    operator = conv2d(k=7, c=1, r=1, s=1, p=1, q=1)
    with pytest.raises(InputError) as raised:
        convert([str(path)], "tilewright", arch=TIMELOOP, layer=("layer", operator))
    assert told in str(raised.value)
    assert str(raised.value).startswith(f"{path}:")


def test_what_directives_cannot_say_is_refused() -> None:
    """Two loops of one dimension in a level, stores among loops, remainders inside."""
    operator = conv2d(k=12, c=1, r=1, s=1, p=1, q=1)
    head = [{"store": name, "level": "DRAM"} for name in "IWO"]
    inner = [{"store": name, "level": "RF"} for name in "IWO"]
    bad = {
        "a second loop of K": [*head, *({"temporal": "K", "tile": tile} for tile in (4, 1)), *inner],
        "begins to live in RF inside loops": [*head, *inner[:2], {"temporal": "K", "tile": 1}, inner[2]],
        "leaves a remainder": [
            *head,
            {"temporal": "K", "tile": 5},
            {"store": "I", "level": "SPM"},
            {"temporal": "K", "tile": 2},
            *inner,
            {"temporal": "K", "tile": 1},
        ],
    }
    for told, nodes in bad.items():
        with pytest.raises(NotStatedError, match=told):
            directives(Mapping.from_data(nodes), operator, TIMELOOP)
