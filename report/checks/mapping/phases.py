"""Whether the layers of a document are those of a model's phases, and bound every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilewright.formulation.mapping.growth import grows, spanning
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.phases import PhasesRecord
from tilewright.workloads.phases import first_length, parse_phases, phase_layers
from tilewright.workloads.selection import SelectedLayer


def phase_faults(
    record: PhasesRecord, model: str, layers: Sequence[SelectedLayer], missing: Iterable[str] = ()
) -> Iterator[str]:
    """What the model, its phases and the lengths of the cache do not give.

    Parameters
    ----------
    record : phases and lengths
    model : its name, with all parameters
    layers : those of the document
    missing : names of layers that were asked for and are not there
    """
    try:
        phases = parse_phases(record.text)
        first = first_length(model, phases)
        ends = [first, first + phases.steps - 1] if phases.steps else []
        ordered = sorted(set(record.lengths))
        if ordered != record.lengths or [*ordered[:1], *ordered[-1:]] != ends:
            yield f"phases.lengths: {record.lengths}, expected from {ends}, increasing"
            return
        known = {
            (name, layer.operator, layer.runs, layer.least_runs)
            for layer in phase_layers(model, phases, record.lengths, (), spanning)
            for name in layer.names
        }
    except InputError as error:
        yield f"phases: {error}"
        return
    for index, layer in enumerate(layers):
        for name in layer.names:
            if (name, layer.operator, layer.runs, layer.least_runs) not in known:
                yield f"layers[{index}]: {name} is not that of {model} in {record.text}"
                break
    names = {name for name, *_ in known}
    unknown = next((name for name in missing if name not in names), None)
    if unknown is not None:
        yield f"missing: {model} in {record.text} has no layer {unknown}"
    yield from _whole_faults(
        [*_stems(name for layer in layers for name in layer.names), *_stems(missing)], names
    )


def growth_faults(
    record: PhasesRecord, engine: Engine, model: str, factors: str | None, demands: Sequence[str]
) -> Iterator[str]:
    """Lengths are left out only where costs are known to grow with the cache.

    Parameters
    ----------
    record : phases and lengths
    engine, model : the machine and the name of its cost model
    factors, demands : as they were asked for
    """
    every = len(record.lengths) == (record.lengths[-1] - record.lengths[0] + 1 if record.lengths else 0)
    if not every and not grows(engine, model, factors, demands):
        yield "phases.lengths: steps are left out, but costs need not grow with the cache on this machine"


def _stems(names: Iterable[str]) -> list[tuple[str, str]]:
    """Per name of a layer in a phase, the layer's name and the name itself."""
    return [(name[name.index("]") + 2 :] if "[" in name else name, name) for name in names]


def _whole_faults(stated: Sequence[tuple[str, str]], names: set[str]) -> Iterator[str]:
    """A layer whose size depends on the length of the cache is there at every length, or at none."""
    own = {name for _, name in stated}
    asked = {stem for stem, name in stated if stem != name}
    for stem, name in _stems(sorted(names)):
        if stem != name and stem in asked and name not in own:
            yield f"layers: {name} is missing"
            return
