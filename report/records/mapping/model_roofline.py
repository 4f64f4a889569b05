"""The roofline of a whole model: time by phase and kind of layer, beside limits of compute and bandwidth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.mapping.parts.compulsory import least_compute, least_transfers
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument
from tilewright.report.records.mapping.layer_kinds import KINDS, OTHERS, kind_of
from tilewright.report.records.mapping.roofline import dram_rate
from tilewright.workloads.phases import DECODE, PREFILL, parse_phases

_PHASE = re.compile(rf"({PREFILL}|{DECODE})(\[[^]]*\])?\.")


@dataclass(frozen=True, slots=True)
class KindRow:
    """The layers of one kind in one phase, all runs together.

    Parameters
    ----------
    phase : ``prefill``, ``decode``, or empty for a model of one run
    kind : such as ``attention`` or ``feed-forward``
    layers : how often such layers run
    proven : of those, with a mapping that is proven optimal
    seconds, energy_pj : of their mappings
    share : of the phase's time
    compute_seconds : with all PEs at work in every iteration
    transfer_seconds : for what must cross the outermost level's ports: every operand read once, every result
        written once
    operations : iterations of the layers' loops
    """

    phase: str
    kind: str
    layers: int
    proven: int
    seconds: float
    energy_pj: float
    share: float
    compute_seconds: float
    transfer_seconds: float
    operations: int

    @property
    def limit(self) -> float:
        """The longer of the two limits, s."""
        return max(self.compute_seconds, self.transfer_seconds)


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase of a model, one run of it.

    Parameters
    ----------
    phase : ``prefill``, ``decode``, or empty for a model of one run
    runs : how often it runs
    seconds : of one run: to the first token, or for one more token of every sequence
    energy_pj : of one run and one sequence or picture
    """

    phase: str
    runs: int
    seconds: float
    energy_pj: float


@dataclass(frozen=True, slots=True)
class Roofs:
    """Where kinds of layers stand below the roofs of compute and of the outermost ports.

    Parameters
    ----------
    reach : of every kind, operations per byte that must cross the ports; bytes are those that they move at
        their full rate, so that a kind on the slope is one whose transfers take all its time
    rates : of every kind, operations per cycle
    ends, heights : of the roof: where the figure begins, its corner, where the figure ends
    """

    reach: tuple[float, ...]
    rates: tuple[float, ...]
    ends: tuple[float, float, float]
    heights: tuple[float, float, float]


def roofs(rows: Sequence[KindRow], engine: Engine) -> Roofs | None:
    """The roofs over some kinds; ``None`` where nothing limits the ports, or a kind moves nothing."""
    rate = dram_rate(engine)
    if rate is None or not rows or not all(row.transfer_seconds for row in rows):
        return None
    peak, hertz = float(engine.instances), float(engine.clock_mhz) * 1e6
    reach = tuple(row.operations / (row.transfer_seconds * hertz * float(rate)) for row in rows)
    corner = peak / float(rate)
    low, high = min(*reach, corner) / 2, max(*reach, corner) * 2
    rates = tuple(row.operations / (row.seconds * hertz) for row in rows)
    return Roofs(reach, rates, (low, corner, high), (low * float(rate), peak, peak))


def has_kinds(document: ResultDocument) -> bool:
    """Whether layers with a mapping are of more than one kind; takes a moment, `kind_rows` does not."""
    mapped = [layer for layer in document.layers if layer.metrics is not None and layer.runs]
    return len({kind for layer in mapped for _, kind in _kinds(layer)}) > 1


def kind_rows(document: ResultDocument, engine: Engine) -> list[KindRow]:
    """Kinds of layers in the sequence of `KINDS`, phase by phase; layers without a mapping are left out."""
    parts: dict[tuple[str, str], list[_Part]] = {}
    for part in _parts(document, engine):
        parts.setdefault((part.phase, part.kind), []).append(part)
    second = 1 / (float(engine.clock_mhz) * 1e6)
    rows: list[KindRow] = []
    for phase in dict.fromkeys(phase for phase, _ in parts):
        whole = sum(part.cycles for (own, _), some in parts.items() if own == phase for part in some)
        for kind in (*KINDS, OTHERS):
            some = parts.get((phase, kind), [])
            if some:
                cycles = sum(part.cycles for part in some)
                rows.append(
                    KindRow(
                        phase,
                        kind,
                        sum(part.count for part in some),
                        sum(part.count for part in some if part.proven),
                        cycles * second,
                        float(sum((part.energy for part in some), Fraction(0))),
                        cycles / whole,
                        sum(part.compute for part in some) * second,
                        sum(part.transfers for part in some) * second,
                        sum(part.operations for part in some),
                    )
                )
    return rows


def phase_rows(document: ResultDocument, engine: Engine) -> list[PhaseRow]:
    """Seconds and energy of one run of each phase; none where a layer has no mapping."""
    if document.totals.cycles is None:
        return []
    kinds = kind_rows(document, engine)
    runs = {"": 1}
    if document.phases is not None:
        phases = parse_phases(document.phases.text)
        runs = {PREFILL: phases.prompts, DECODE: phases.steps}
    return [
        PhaseRow(
            phase,
            count,
            sum(row.seconds for row in kinds if row.phase == phase) / count,
            sum(row.energy_pj for row in kinds if row.phase == phase) / count / document.batch,
        )
        for phase, count in runs.items()
        if count
    ]


@dataclass(frozen=True, slots=True)
class _Part:
    """Layers of one operator that are of one kind and phase."""

    phase: str
    kind: str
    count: int
    proven: bool
    cycles: int
    energy: Fraction
    compute: int
    transfers: int
    operations: int


def _parts(document: ResultDocument, engine: Engine) -> Iterator[_Part]:
    for layer in document.layers:
        if layer.metrics is None or not layer.runs:
            continue
        operator = layer.operator.build(layer.name)
        machine = fitted(engine, operator)
        energy = Fraction(layer.metrics.energy_pj_exact)
        for (phase, kind), names in _kinds(layer).items():
            count = names * layer.runs
            yield _Part(
                phase,
                kind,
                count,
                layer.status == "optimal",
                count * layer.metrics.cycles,
                count * energy,
                count * least_compute(operator, machine),
                count * least_transfers(operator, machine),
                count * operator.iterations,
            )


def _kinds(layer: LayerRecord) -> dict[tuple[str, str], int]:
    """How many of a layer's names are of which phase and kind."""
    counts: dict[tuple[str, str], int] = {}
    for name in layer.names:
        phase = _PHASE.match(name) if layer.runs != 1 or name.startswith((PREFILL, DECODE)) else None
        place = (phase[1] if phase else "", kind_of(name))
        counts[place] = counts.get(place, 0) + 1
    return counts
