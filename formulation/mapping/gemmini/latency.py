"""Cycles of a run of Gemmini's library, from its counts and a handful of measured constants.

Three things work side by side: the processor that prepares calls, the DMA that fetches rows, and the array.
The slowest counts, and a small share of the others beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.formulation.mapping.gemmini.row import Row
from tilewright.formulation.mapping.gemmini.run import Run, array_side, run_of
from tilewright.foundation.yaml_document import parse_yaml

CONSTANTS = Path(__file__).with_name("constants.yaml")


@dataclass(frozen=True, slots=True)
class Constants:
    """What was fitted to measured runs (``python -m studies.gemmini fit``); all in cycles, none negative.

    Parameters
    ----------
    start : once
    product_call, convolution_call : to prepare one call of the loop unit
    row : for every row that the DMA fetches
    byte : for every byte of it
    missed : for every row of weights that comes from DRAM again
    instruction : for every one, beside a cycle for every row of inputs that it streams
    beside : share of what is not slowest that adds to what is
    empty : for a call on padding alone
    """

    start: float
    product_call: float
    convolution_call: float
    row: float
    byte: float
    missed: float
    instruction: float
    beside: float
    empty: float

    @property
    def named(self) -> dict[str, float]:
        """By name, in the sequence of their declaration."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@cache
def fitted_constants() -> Constants:
    """The constants that come with the package."""
    stated: Any = parse_yaml(CONSTANTS.read_text("utf-8")).data
    return Constants(**{name: float(entry["cycles"]) for name, entry in stated["constants"].items()})


def cycles_of_run(run: Run, constants: Constants) -> float:
    """Predicted cycles."""
    call = constants.product_call if run.is_product else constants.convolution_call
    busy = (
        call * run.calls,
        constants.row * run.rows + constants.byte * run.bytes + constants.missed * run.missed,
        run.streamed + constants.instruction * run.instructions,
    )
    slowest = max(busy)
    return constants.start + slowest + constants.beside * (sum(busy) - slowest) + constants.empty * run.empty


class Prediction(float):
    """Predicted cycles, with what a machine would not do as the row says.

    ``flags`` has a sentence for every rule that the row's mapping breaks on the row's machine; none where it
    fits.
    """

    flags: tuple[str, ...]

    def __new__(cls, cycles: float, flags: tuple[str, ...] = ()) -> Prediction:
        made = super().__new__(cls, cycles)
        made.flags = flags
        return made


def predict(row: Row) -> Prediction:
    """Cycles of a row's mapping, flagged where it does not fit the row's machine."""
    return Prediction(cycles_of_run(run_of(row), fitted_constants()), misfits(row))


def misfits(row: Row) -> tuple[str, ...]:
    """What of a row's mapping its machine cannot do."""
    tile, reasons = row.tile, []
    side = row.array or 16
    for dim, factor in row.spatial.items():
        if factor > side:
            reasons.append(f"spreads {factor} of {dim} over an array of {side} a side")
    if array_side(row) != side:
        reasons.append(f"blocks of {array_side(row)} on an array of {side} a side")
    columns = -(-tile["K"] // max(1, row.spatial["K"]))
    outputs = tile["N"] * tile["P"] * tile["Q"] * columns
    if row.accumulator is not None and outputs > row.accumulator:
        reasons.append(f"{outputs} partial sums in an accumulator column of {row.accumulator}")
    picture = [(tile[a] - 1) * row.stride + tile[b] for a, b in ("PR", "QS")]
    inputs = tile["N"] * tile["C"] * picture[0] * picture[1]
    weights = tile["K"] * tile["C"] * tile["R"] * tile["S"]
    if row.scratchpad is not None and inputs + weights > row.scratchpad:
        reasons.append(f"{inputs + weights} words in a scratchpad of {row.scratchpad}")
    if not row.is_product and row.bounds["P"] != row.bounds["Q"]:
        reasons.append(f"a picture of {row.bounds['P']} by {row.bounds['Q']}, the library's are square")
    if run_of(row).empty:
        reasons.append(f"{run_of(row).empty} calls on padding alone, where the loop unit's counters wrap")
    return tuple(reasons)
