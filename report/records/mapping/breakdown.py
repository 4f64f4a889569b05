"""Where energy and cycles of a mapping go: by level, tensor and role."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.mapping.cost.registry import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.hardware.mapping.engine import Dma, Engine, MemoryLevel
from tilewright.hardware.mapping.fitted import fitted
from tilewright.report.records.mapping.document import AccessRecord, MetricsRecord
from tilewright.workloads.mapping.operator import Operator, Role

_ROUNDING = Fraction(1, 10**9)
COMPUTE = "compute"


@dataclass(frozen=True, slots=True)
class EnergyPart:
    """Energy of one component.

    Parameters
    ----------
    tensor, role : whose accesses cost it; empty where the component is not distinguished by tensor (the PEs,
        networks)
    """

    component: str
    tensor: str
    role: str
    picojoules: float


def energy_parts(metrics: MetricsRecord, engine: Engine, operator: Operator) -> list[EnergyPart]:
    """The energy by component and tensor, levels from the outside in and what is no level last.

    A level is divided by tensor where accesses times unit energies add up to what the cost model charges it;
    otherwise it stands as one.
    """
    levels = {level.name: level for level in fitted(engine, operator).levels}
    roles = {tensor.name: tensor.role for tensor in operator.tensors}
    parts: list[EnergyPart] = []
    for component in in_machine_order(metrics.energy_by_component_pj, engine):
        charged = metrics.energy_by_component_pj[component]
        shares: dict[str, Fraction] = {}
        if component in levels:
            level = levels[component]
            for row in metrics.accesses:
                if row.level == component:
                    cost = _access_energy(level, roles.get(row.tensor), row)
                    shares[row.tensor] = shares.get(row.tensor, Fraction(0)) + cost
        reported = sum(shares.values(), Fraction(0))
        if shares and abs(reported - Fraction(charged)) <= _ROUNDING * max(reported, Fraction(1)):
            parts += [
                EnergyPart(component, name, str(roles.get(name, "")), float(share))
                for name, share in shares.items()
            ]
        else:
            parts.append(EnergyPart(component, "", "", float(charged)))
    return parts


def _access_energy(level: MemoryLevel, role: Role | None, row: AccessRecord) -> Fraction:
    """pJ of a tensor's accesses at a level; of a role that is not known what most roles cost."""
    read = level.read_energy if role is None else level.read_energy_of(role)
    write = level.write_energy if role is None else level.write_energy_of(role)
    return row.reads * read + (row.fills + row.updates) * write


def bits_of(engine: Engine, operator: Operator, level: str, tensor: str) -> int:
    """Bits of an element of a tensor in a level; where either is not known, the machine's usual bits.

    Parameters
    ----------
    engine : gives the widths of its levels
    operator : gives the tensors' roles
    level : name of a memory level, or of another component
    tensor : name of a tensor, or empty
    """
    engine = fitted(engine, operator)
    roles = {candidate.name: candidate.role for candidate in operator.tensors}
    stored_in = next((candidate for candidate in engine.levels if candidate.name == level), None)
    if stored_in is None or tensor not in roles:
        return engine.element_bits
    return engine.width(stored_in, roles[tensor])


def in_machine_order(components: Iterable[str], engine: Engine) -> list[str]:
    """Components by the level that they belong to, outermost first; the PEs and what is no level's last.

    A level's network and the like begin with its name.
    """
    names = [level.name for level in engine.levels]

    def place(component: str) -> tuple[int, bool]:
        level = component if component in names else component.rpartition(" ")[0]
        return names.index(level) if level in names else len(names), component not in names

    return sorted(components, key=place)


def in_role_order(roles: Iterable[str]) -> list[str]:
    """Roles as machines name them, and the empty one last."""
    order = [*map(str, Role), ""]
    return sorted({*roles}, key=order.index)


@dataclass(frozen=True, slots=True)
class LatencyPart:
    """Cycles of a layer that one cause takes."""

    name: str
    cycles: int


def latency_parts(operator: Operator, engine: Engine, model: str, mapping: Mapping) -> list[LatencyPart]:
    """The cycles of a mapping: compute, and the transfers of every level that nothing hides.

    The evaluator counts the mapping again with each level in turn, outermost first, on ports of endless
    width; what each saves is its exposed transfers, and what is left in the end is compute.  The parts add up
    to the cycles exactly.

    Parameters
    ----------
    operator, engine : the layer and the machine
    model : name of the cost model
    mapping : that fits both

    Raises
    ------
    InputError : where the mapping does not fit the operator and the engine
    """
    known = cost_model(model)

    def cycles(machine: Engine) -> int:
        return evaluate_mapping(operator, machine, known, mapping).cycles

    parts: list[LatencyPart] = []
    before = cycles(engine)
    for index, level in enumerate(engine.levels):
        freed = replace(level, read_bandwidth=None, write_bandwidth=None, shared_bandwidth=None)
        levels = (*engine.levels[:index], freed, *engine.levels[index + 1 :])
        engine = replace(engine, levels=levels)
        if index == 0 and engine.dma is not None:
            engine = replace(engine, dma=Dma(Fraction(0), Fraction(0), engine.dma.clock_ratio))
        after = cycles(engine)
        parts.append(LatencyPart(f"{level.name} transfers", before - after))
        before = after
    return [LatencyPart(COMPUTE, before), *parts]
