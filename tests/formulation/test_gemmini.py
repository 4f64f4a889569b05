"""Gemmini's measured runs: mapping texts, predicted cycles, the library's own tiles, and Timeloop's counts.

``tests/data/gemmini_rows.json`` has rows of ucb-bar/dosa at a7a3239 (three layers with their mappings, one
row of every layer with the library's own tiling, and every fortieth Timeloop point handed out).
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.gemmini.auto import Memories, auto_tiles
from tilewright.formulation.mapping.gemmini.latency import fitted_constants
from tilewright.formulation.mapping.gemmini.row import read_row
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.timing import Timing

DATA = json.loads((Path(__file__).parents[1] / "data" / "gemmini_rows.json").read_text("utf-8"))
GOOD = "L3[WIO] K48 - L2[WI] N1 K16X - L1[O] C48 P16 C16X - L0[W] P8"


def row(text: str = GOOD, **changed: object) -> dict[str, object]:
    """A matrix product of BERT."""
    columns = {"C": 768, "K": 768, "N": 1, "P": 128, "Q": 1, "R": 1, "S": 1, "Hstride": 1, "Wstride": 1}
    return {"mapping.mapping": text, **{f"prob.{name}": value for name, value in columns.items()}, **changed}


def test_ranks_and_regrets_within_layers() -> None:
    """Layers that are told apart as the page says; a constant or shuffled prediction would not do."""
    for layer in {(each["prob.K"], each["prob.C"]) for each in DATA["train"]}:
        own = [each for each in DATA["train"] if (each["prob.K"], each["prob.C"]) == layer]
        cycles = np.array([float(each["target.gemmini_cycle"]) for each in own])
        predicted = np.array([tw.gemmini.predict_cycles(each) for each in own])
        assert cycles[np.argmin(predicted)] <= 1.1 * cycles.min(), layer
        ranks = np.corrcoef(np.argsort(np.argsort(predicted)), np.argsort(np.argsort(cycles)))[0, 1]
        assert ranks >= 0.9, layer
        assert np.median(np.abs(np.log(predicted / cycles))) < 0.25, layer


def test_what_was_measured_is_not_read() -> None:
    """Deleting targets and unused columns changes nothing; numbers do as texts do."""
    for each in DATA["train"][::9] + DATA["auto"][::5]:
        used = {
            name: value for name, value in each.items() if name.startswith(("prob.", "arch.m", "mapping"))
        }
        numbers = {name: value if name == "mapping.mapping" else float(value) for name, value in used.items()}
        whole = tw.gemmini.predict_cycles(each)
        assert whole > 0
        assert whole == tw.gemmini.predict_cycles(used) == tw.gemmini.predict_cycles(numbers)
        bare = {name: value for name, value in used.items() if not name.startswith("arch.")}
        assert tw.gemmini.predict_cycles(bare) == whole  # the machine decides flags alone


def test_a_row_that_does_not_fit_its_machine_is_predicted_and_flagged() -> None:
    """Cycles all the same, and a sentence for every rule."""
    fits = tw.gemmini.predict_cycles(row(**{"arch.meshX": "16", "arch.mem1_entries": 256}))
    assert fits.flags == ()
    small = tw.gemmini.predict_cycles(
        row(**{"arch.meshX": 8, "arch.mem1_entries": 100, "arch.mem2_entries": 9})
    )
    assert small == fits
    assert len(small.flags) == 5
    assert any("accumulator" in flag for flag in small.flags)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "four levels"),
        (GOOD.replace("L1[O]", "L1[W]"), "expected L1"),
        (GOOD.replace("K48", "K0"), "loops such as"),
        (GOOD.replace("K16X", "C16X"), "over K at L2"),
        (GOOD.replace("K48", "K40"), "768 iterations of K, got 640"),
        (GOOD + " - L9[W] P2", "four levels"),
        (None, "four levels"),
        (7, "four levels"),
    ],
)
def test_a_wrong_text_is_one_line(text: object, said: str) -> None:
    """What is wrong, and what was expected."""
    with pytest.raises(InputError, match=said) as raised:
        tw.gemmini.predict_cycles(row(text))  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("column", "value"),
    [("prob.C", "x"), ("prob.K", -4), ("prob.P", 1.5), ("prob.Q", None), ("prob.R", 5000)],
)
def test_a_wrong_number_is_one_line(column: str, value: object) -> None:
    """So is a column that cannot be read."""
    with pytest.raises(InputError, match=column):
        tw.gemmini.predict_cycles(row(**{column: value}))


def test_the_librarys_own_tiles_are_met() -> None:
    """Of all layers, on the default memories, which the runs' library was compiled for."""
    for each in DATA["auto"]:
        read = read_row(each)
        tiles = auto_tiles(read.bounds, read.stride, Memories())
        assert "_".join(str(tiles[dim]) for dim in "RSPQCKN") == each["dse.auto_tiling"], each


def test_cycles_of_timeloop_points() -> None:
    """Exactly Timeloop's, which counts an accumulator's first read, and rounds a ratio of floating point."""
    hierarchy = cost_model("hierarchy")
    for each in DATA["timeloop"]:
        read = read_row(each)
        engine = timeloop_machine(load_engine(f"gemmini[array={read.array}]"))
        evaluation = evaluate_mapping(read.operator, engine, hierarchy, read.mapping())
        steps = evaluation.details["compute cycles"]
        outputs = math.prod(read.bounds[dim] for dim in "NKPQ")
        columns = read.spatial["K"]
        slowest = 1.0
        for level, instances in (("DRAM", 1), ("Scratchpad", 1), ("Accumulator", columns)):
            moved = sum(a.reads + a.fills + a.updates for a in evaluation.accesses if a.level == level)
            moved += outputs if level == "Accumulator" else 0
            rate = {"DRAM": 8, "Scratchpad": 2 * (read.array or 0), "Accumulator": 2}[level]
            slowest = max(slowest, moved / instances / steps / rate)
        assert abs(steps * slowest - float(each["target.cycle"])) <= 1, each


def timeloop_machine(engine: Engine) -> Engine:
    """Without set-up cycles and widths, and with windows that stay in the scratchpad."""
    levels = [
        replace(level, timing=Timing(overlap=True), double_buffered=False, widths={})
        for level in engine.levels
    ]
    levels[1] = replace(levels[1], sliding_window=True)
    return replace(engine, levels=tuple(levels))


def test_constants_are_a_handful_and_those_of_the_preset() -> None:
    """The machine's set-up cycles are the fit's."""
    named = fitted_constants().named
    assert len(named) == 9
    assert min(named.values()) > 0
    dram = load_engine("gemmini").levels[0].timing
    assert float(dram.tile) == pytest.approx(named["convolution_call"], rel=1e-3)
    assert float(dram.row) == pytest.approx(named["row"], rel=1e-3)


def test_parameters_of_the_preset() -> None:
    """Sizes and bandwidths follow; what cannot be is told."""
    engine = load_engine("gemmini[array=32,scratchpad=512kB,accumulator=128kB]")
    assert engine.instances == 1024
    assert engine.levels[1].capacity == 256 * 1024
    assert engine.levels[2].capacity == 512
    for wrong in ("gemmini[array=0]", "gemmini[side=4]", "gemmini[scratchpad=big]", "nvdla-256[array=4]"):
        with pytest.raises(InputError):
            load_engine(wrong)
