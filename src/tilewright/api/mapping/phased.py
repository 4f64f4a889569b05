"""A language model in several phases: its layers, each with how often it runs."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.formulation.mapping.growth import grows, spanning
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.phases import PhasesRecord
from tilewright.workloads.phases import FLAG, first_length, parse_phases, phase_layers, spread
from tilewright.workloads.selection import SelectedLayer

MOST_LENGTHS = 4096


def phased(
    model: str,
    text: str,
    lengths: int,
    engines: Sequence[Engine],
    asked: tuple[str | None, str | None, tuple[str, ...]],
    patterns: Sequence[str] = (),
) -> tuple[PhasesRecord, list[SelectedLayer]]:
    """The phases of a model, and the layers that bound them.

    Parameters
    ----------
    model : name of a network with all its parameters
    text : phases with how often they run
    lengths : of the cache that have layers of their own; all of them where costs may not grow with the cache
    engines : machines that it runs on
    asked : cost model, factors and demands
    patterns : glob patterns of layers, without the phase before their names

    Raises
    ------
    InputError : for phases that the model does not have, and too many lengths
    """
    phases = parse_phases(text)
    if not 2 <= lengths <= MOST_LENGTHS:
        raise InputError("--lengths", None, f"expected from 2 to {MOST_LENGTHS:,}, got {lengths}")
    name, factors, demands = asked
    known = all(grows(engine, name or engine.cost_model, factors, demands) for engine in engines)
    if not known and phases.steps > MOST_LENGTHS:
        raise InputError(FLAG, text, f"expected at most {MOST_LENGTHS:,} steps where each is searched")
    first = first_length(model, phases)
    chosen = spread(first, phases.steps, lengths if known else phases.steps) if phases.steps else ()
    layers = phase_layers(model, phases, chosen, patterns, spanning)
    return PhasesRecord(text=str(phases), lengths=list(chosen)), layers
