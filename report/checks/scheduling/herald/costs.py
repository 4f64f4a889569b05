"""Whether the costs of a scheduling problem are those of the mappings that stand beside them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.scheduling.herald.problem import Option
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald.system import System
from tilewright.report.records.scheduling.herald.problem import CostsRecord, OptionRecord, ProblemRecord
from tilewright.solvers.mapping.machine_sizes import MachineSize
from tilewright.solvers.scheduling.herald.cost_tables.build import option_on
from tilewright.solvers.scheduling.herald.cost_tables.costs import tile_memory
from tilewright.solvers.scheduling.herald.cost_tables.evidence import counted_cost
from tilewright.solvers.scheduling.herald.cost_tables.residency_costs import dram_energies
from tilewright.workloads.mapping.operator import Operator

_FIGURES = {
    "cycles": "cycles",
    "energy": "energy_pj_exact",
    "fetch": "fetch",
    "memory": "memory_bytes",
    "fetch_memory": "fetch_bytes",
}
_SPILLS = ("input_spill_pj_exact", "output_spill_pj_exact")


def cost_faults(problem: ProblemRecord, system: System) -> Iterator[str]:
    """Every option is counted again by the evaluator; a cost without a mapping is no cost.

    Parameters
    ----------
    system : whose engines the problem has, in their order
    """
    for index, costs in enumerate(problem.costs):
        where = f"problem.costs[{index}]"
        yield from _repeated(costs, where)
        if costs.operator is None:
            yield f"{where}.operator: missing, its cost cannot be computed"
            continue
        try:
            operator = costs.operator.build(where)
        except InputError as error:
            yield str(error)
            continue
        for place, record in enumerate(costs.options):
            yield from _option_faults(record, operator, problem, system, f"{where}.options[{place}]")


def _repeated(costs: CostsRecord, where: str) -> Iterator[str]:
    seen = [(option.engine, option.layout) for option in costs.options]
    for index, key in enumerate(seen):
        if key in seen[:index]:
            yield f"{where}.options[{index}]: a second one on {key[0]} under {key[1]}"


def _option_faults(
    record: OptionRecord, operator: Operator, problem: ProblemRecord, system: System, where: str
) -> Iterator[str]:
    if record.mapping is None:
        yield f"{where}.mapping: missing, its cost cannot be computed"
        return
    index = problem.engines.index(record.engine) if record.engine in problem.engines else -1
    flows = {flow.name: flow for flow in system.subs[index].dataflows} if index >= 0 else {}
    if record.layout not in flows:
        return  # reported already
    sub, flow = system.subs[index], flows[record.layout]
    point = MachineSize(flow.array(sub.pes), sub.bandwidth)
    try:
        mapping = Mapping.from_data(record.mapping.nodes, f"{where}.mapping")
        cost = counted_cost(operator, flow, point, tile_memory(sub, system), mapping, f"{where}.mapping")
    except InputError as error:
        yield str(error)
        return
    yield from _figure_faults(record, option_on(index, sub, system, flow, cost), where)
    spills = {reported: Fraction(getattr(record, reported)) for reported in _SPILLS}
    if not any(spills.values()):
        return
    most = dram_energies(operator, flow, sub, system, mapping)
    for (reported, spill), whole in zip(spills.items(), most, strict=True):
        if spill and not system.keep_activations:
            yield f"{where}.{reported}: {spill}, but the system sends results to DRAM"
        elif spill not in (0, whole):
            yield f"{where}.{reported}: {spill}, the evaluator finds {whole}"


def _figure_faults(record: OptionRecord, fresh: Option, where: str) -> Iterator[str]:
    spilled = sum(Fraction(getattr(record, reported)) for reported in _SPILLS)
    for field, reported in _FIGURES.items():
        counted = getattr(fresh, field)
        if field == "energy":
            counted -= spilled  # what comes to it where a result does not stay stands apart
        stored = getattr(record, reported)
        if str(stored) != str(counted):
            yield f"{where}.{reported}: {stored}, the evaluator finds {counted}"
