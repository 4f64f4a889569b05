"""A language model in several phases: its layers, each with how often it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.formulation.mapping.growth import grows, spanning
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.phases import PhasesRecord
from tilewright.workloads.phases import FLAG, LENGTHS, first_length, parse_phases, phase_layers, spread
from tilewright.workloads.selection import SelectedLayer

MOST_LENGTHS = 4096


@dataclass(frozen=True, slots=True)
class PhasesAsked:
    """What is asked of a model's phases.

    Parameters
    ----------
    text : phases with how often they run
    lengths : of the cache that have layers of their own, `LENGTHS` by default; all of them where costs need
        not grow with the cache
    patterns : glob patterns of layers, without the phase before their names
    demands : whether anything is demanded of mappings
    """

    text: str
    lengths: int | None
    patterns: tuple[str, ...] = ()
    demands: bool = False


def phased(
    model: str,
    asked: PhasesAsked,
    engines: Sequence[Engine],
    cost_model: str | None,
    spaces: tuple[str | None, str | None, str | None],
) -> tuple[PhasesRecord, list[SelectedLayer]]:
    """The phases of a model, and the layers that bound them.

    Parameters
    ----------
    model : name of a network with all its parameters
    engines : machines that it runs on
    cost_model : its name; by default the machines' own
    spaces : factors, storage and tiles; ``None`` for the usual ones

    Raises
    ------
    InputError : for phases that the model does not have, and too many lengths
    """
    phases = parse_phases(asked.text)
    searched = LENGTHS if asked.lengths is None else asked.lengths
    if not 2 <= searched <= MOST_LENGTHS:
        raise InputError("--lengths", None, f"expected from 2 to {MOST_LENGTHS:,}, got {searched}")
    factors, storage, tiles = spaces
    known = (storage or "even") == "even" and tiles != "every" and not asked.demands
    known &= all(grows(engine, cost_model or engine.cost_model, factors, ()) for engine in engines)
    if not known and phases.steps > MOST_LENGTHS:
        message = f"expected at most {MOST_LENGTHS:,} steps where each is searched"
        raise InputError(FLAG, asked.text, message)
    first = first_length(model, phases)
    lengths = spread(first, phases.steps, searched if known else phases.steps) if phases.steps else ()
    layers = phase_layers(model, phases, lengths, asked.patterns, spanning)
    return PhasesRecord(text=str(phases), lengths=list(lengths)), layers
