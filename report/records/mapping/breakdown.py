"""Where the energy of a mapping goes: by level and tensor."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.document import MetricsRecord

_ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class EnergyPart:
    """Energy of one component.

    Parameters
    ----------
    tensor : whose accesses cost it; empty where the component is not told apart by tensor (the PEs, networks)
    """

    component: str
    tensor: str
    picojoules: float


def energy_parts(metrics: MetricsRecord, engine: Engine) -> list[EnergyPart]:
    """The energy by component and tensor, in the document's sequence of components.

    A level is divided by tensor where accesses times unit energies add up to what the cost model charges it;
    otherwise it stands as one.
    """
    levels = {level.name: level for level in engine.levels}
    parts: list[EnergyPart] = []
    for component, charged in metrics.energy_by_component_pj.items():
        shares: dict[str, Fraction] = {}
        if component in levels:
            level = levels[component]
            for row in metrics.accesses:
                if row.level == component:
                    cost = row.reads * level.read_energy + (row.fills + row.updates) * level.write_energy
                    shares[row.tensor] = shares.get(row.tensor, Fraction(0)) + cost
        told = sum(shares.values(), Fraction(0))
        if shares and abs(told - Fraction(charged)) <= _ROUNDING * max(told, Fraction(1)):
            parts += [EnergyPart(component, tensor, float(share)) for tensor, share in shares.items()]
        else:
            parts.append(EnergyPart(component, "", float(charged)))
    return parts
