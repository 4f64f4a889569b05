"""Where the energy of a whole network goes: by level and tensor, each layer as often as it is there."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.breakdown import energy_parts, in_machine_order, in_role_order
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument
from tilewright.workloads.mapping.operator import Role

OTHER = "other"
"""The column of what is no level's or no tensor's: multiplying, networks."""


@dataclass(frozen=True, slots=True)
class NetworkPart:
    """Energy of one component and role over a network.

    Parameters
    ----------
    component : a level's name, or another component of the cost model
    role : inputs, weights or outputs; empty where the component is not divided by tensor
    picojoules : of all layers that have a mapping, each with its count
    share : of the energy of these layers
    """

    component: str
    role: str
    picojoules: float
    share: float


def network_energy(document: ResultDocument, engine: Engine) -> list[NetworkPart]:
    """The parts, levels from the outside in, what is no level last; empty without a mapping."""
    sums: dict[tuple[str, str], float] = {}
    for layer in document.layers:
        for key, picojoules in layer_energy(layer, engine).items():
            sums[key] = sums.get(key, 0.0) + layer.count * picojoules
    whole = sum(sums.values())
    components = in_machine_order(dict.fromkeys(component for component, _ in sums), engine)
    roles = in_role_order(role for _, role in sums)
    return [
        NetworkPart(component, role, sums[component, role], sums[component, role] / whole if whole else 0.0)
        for component in components
        for role in roles
        if (component, role) in sums
    ]


def layer_energy(layer: LayerRecord, engine: Engine) -> dict[tuple[str, str], float]:
    """pJ by component and role of one run of a layer; nothing where it has no mapping."""
    sums: dict[tuple[str, str], float] = {}
    if layer.metrics is not None:
        for part in energy_parts(layer.metrics, engine, layer.operator.build(layer.name)):
            key = part.component, part.role
            sums[key] = sums.get(key, 0.0) + part.picojoules
    return sums


def energy_columns(engine: Engine) -> list[str]:
    """Names of columns of a table of layers: ``energy_pj.LEVEL.ROLE``, and one for everything else."""
    levels = [
        f"energy_pj.{level.name}.{role}" for level in engine.levels for role in Role if role in level.keeps
    ]
    return [*levels, f"energy_pj.{OTHER}"]


def energy_cells(layer: LayerRecord, engine: Engine) -> list[float | None]:
    """The layer's cells of `energy_columns`: they add up to its energy; empty without a mapping."""
    names = energy_columns(engine)
    if layer.metrics is None:
        return [None] * len(names)
    cells = dict.fromkeys(names, 0.0)
    for (component, role), picojoules in layer_energy(layer, engine).items():
        name = f"energy_pj.{component}.{role}"
        cells[name if name in cells else names[-1]] += picojoules
    return list(cells.values())
