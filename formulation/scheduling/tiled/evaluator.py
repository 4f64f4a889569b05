"""The evaluator of plans: legal or not, and if so cycles, energy, loads and reuse.

Steps are elastic.  With ``S[r]`` the start of step ``r``,

    S[r+1] = max(S[r] + max over links of load[r] / rate,
                 max over tasks t whose last step is r of S[first(t)] + late(t) + cycles(t))

where DRAM counts as a link, a transfer loads every link of its route evenly over its steps (a multicast every
link of its tree once), and ``late(t)`` is what a task waits for because it reads blocks that
arrive in the very
step in which it begins: the longest time of a link on their routes for all such blocks, plus the hops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled import legality_kernel as legality
from tilewright.formulation.scheduling.tiled import plan_kernel, timing_kernel
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan, multicast_groups
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.errors import TilewrightError
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import Topology, topology


class IllegalPlanError(TilewrightError, ValueError):
    """A plan that breaks a dependency, a buffer or a link's rule; says which task, block, engine and step."""


@dataclass(frozen=True, slots=True)
class Energy:
    """pJ by component.

    Parameters
    ----------
    compute : operations of the arrays and vector units
    registers : inside the arrays
    buffer : engines' buffers: reads by the array, results, and both ends of transfers
    network : links between routers
    dram : reads and write-backs
    static : power that runs for the whole time
    """

    compute: float
    registers: float
    buffer: float
    network: float
    dram: float
    static: float

    @property
    def total(self) -> float:
        return self.compute + self.registers + self.buffer + self.network + self.dram + self.static


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a legal plan costs.

    Parameters
    ----------
    cycles : from start to end
    compute_cycles : the same plan if no task waited for data
    unlinked_cycles : the same plan if only DRAM could delay it
    energy : by component
    utilization : multiply-accumulates over what all PEs could do in ``cycles``
    compute_utilization : the same in ``compute_cycles`` (without memory delay)
    atom_utilization : the same in the cycles in which engines run tasks
    dram_read_bytes, dram_write_bytes : traffic of DRAM
    hop_bytes : bytes times links between routers
    reuse : of the bytes of results that tasks read, the part that never came from DRAM
    network_overhead : the part of ``cycles`` that the links add
    step_start : cycle at which each step begins, and the end
    step_wait : cycles that each step's busiest link needs
    busiest_link : per step, its number; -1 is DRAM
    link_bytes : over every link, see `Topology.names`
    peak_bytes : the fullest that each buffer gets
    late : per task, cycles that it waits for blocks that arrive in the step in which it begins
    """

    cycles: int
    compute_cycles: int
    unlinked_cycles: int
    energy: Energy
    utilization: float
    compute_utilization: float
    atom_utilization: float
    dram_read_bytes: int
    dram_write_bytes: int
    hop_bytes: int
    reuse: float
    network_overhead: float
    step_start: Floats
    step_wait: Floats
    busiest_link: Int32s
    link_bytes: Floats
    peak_bytes: Int64s
    late: Floats


def network_of(machine: TiledMachine) -> plan_kernel.Network:
    """A machine as the kernels read it."""
    net = topology(machine)
    return plan_kernel.Network(
        engines=net.engines,
        places=net.places,
        starts=net.starts,
        links=net.links,
        routers=net.routers,
        rates=net.rates,
        dram_rate=float(machine.dram_rate),
        hop_cycles=machine.hop_cycles,
        buffer=machine.engine.buffer_bytes,
    )


def graph_of(dag: AtomicDag) -> plan_kernel.Graph:
    """A DAG as the kernels read it."""
    return plan_kernel.Graph(
        dag.cycles, dag.is_output, dag.block_bytes, dag.block_parent, dag.read_starts, dag.reads
    )


def parts_of(
    dag: AtomicDag, plan: Plan, engines: int
) -> tuple[plan_kernel.Tasks, plan_kernel.Moves, plan_kernel.Holds]:
    """A plan as the kernels read it."""
    moving, held = plan.transfers, plan.residency
    starts = _starts(held.block, dag.blocks)
    return (
        plan_kernel.Tasks(plan.engine, plan.first, plan.last),
        plan_kernel.Moves(
            moving.block,
            moving.source,
            moving.target,
            moving.bytes,
            moving.first,
            moving.last,
            multicast_groups(moving, engines),
        ),
        plan_kernel.Holds(held.block, held.engine, held.start, held.end, starts),
    )


def whole_cycles(end: float) -> int:
    """The cycle in which a plan has ended, of its end as the kernels add it up."""
    return math.ceil(end - 1e-6)


def energy_of(dag: AtomicDag, machine: TiledMachine, totals: Floats, cycles: int) -> Energy:
    """Energy of a plan that transfers so much in so many cycles.

    Parameters
    ----------
    dag, machine : what runs where
    totals : bytes, as `timing_kernel.run` returns them
    cycles : from start to end
    """
    engine = machine.engine
    compute, registers, buffer = dag.energies
    return Energy(
        compute=compute,
        registers=registers,
        buffer=buffer
        + float(totals[timing_kernel.BUFFERS_READ]) * engine.buffer_read_energy
        + float(totals[timing_kernel.BUFFERS_WRITTEN]) * engine.buffer_write_energy,
        network=float(totals[timing_kernel.HOP_BYTES]) * machine.hop_energy,
        dram=float(totals[timing_kernel.DRAM_READ] + totals[timing_kernel.DRAM_WRITTEN])
        * machine.dram_energy,
        static=engine.static_power * machine.engines * cycles,
    )


def evaluate(dag: AtomicDag, machine: TiledMachine, plan: Plan) -> Evaluation:
    """Cycles, energy and traffic of a plan.

    Raises
    ------
    IllegalPlanError : for a plan that is not legal, naming what it breaks
    """
    net, graph = network_of(machine), graph_of(dag)
    _check_numbers(dag, plan)
    tasks, moves, holds = parts_of(dag, plan, net.engines)
    fault, known = legality.check(graph, tasks, moves, holds, net, plan.steps)
    if fault[0] != legality.OK:
        raise IllegalPlanError(_explain(fault, dag, machine, topology(machine), plan))
    ready, _local, served, supplied, awaited, waiting, peak = known
    begin, loads, totals, busiest, waits, late = timing_kernel.run(
        graph=graph,
        tasks=tasks,
        moves=moves,
        ready=ready,
        served=served,
        supplied=supplied,
        late_hold=awaited,
        waiting=waiting,
        net=net,
        steps=plan.steps,
    )
    cycles, unlinked, compute = (whole_cycles(end) for end in begin[-1])
    energy, engine = energy_of(dag, machine, totals, cycles), machine.engine
    power = machine.macs_per_cycle
    return Evaluation(
        cycles=cycles,
        compute_cycles=compute,
        unlinked_cycles=unlinked,
        energy=energy,
        utilization=dag.macs / (power * max(1, cycles)),
        compute_utilization=dag.macs / (power * max(1, compute)),
        atom_utilization=dag.macs / (engine.macs_per_cycle * max(1, int(dag.cycles.sum()))),
        dram_read_bytes=int(totals[timing_kernel.DRAM_READ]),
        dram_write_bytes=int(totals[timing_kernel.DRAM_WRITTEN]),
        hop_bytes=int(totals[timing_kernel.HOP_BYTES]),
        reuse=timing_kernel.reuse(graph, moves, served, supplied, len(holds.block), net.engines),
        network_overhead=(cycles - unlinked) / max(1, cycles),
        step_start=begin[:, timing_kernel.ALL],
        step_wait=waits,
        busiest_link=busiest,
        link_bytes=loads,
        peak_bytes=peak,
        late=late[:, timing_kernel.ALL],
    )


def occupancy(dag: AtomicDag, machine: TiledMachine, plan: Plan) -> Int64s:
    """Bytes in every buffer in every step, shape (engines, steps)."""
    held = plan.residency
    level = np.zeros((machine.engines, plan.steps + 1), dtype=np.int64)
    size = dag.block_bytes[held.block]
    np.add.at(level, (held.engine, held.start), size)
    np.subtract.at(level, (held.engine, held.end + 1), size)
    bytes_held: Int64s = np.cumsum(level, axis=1)[:, :-1]
    return bytes_held


def _starts(block: Int32s, blocks: int) -> Int64s:
    counts = np.bincount(block, minlength=blocks) if len(block) else np.zeros(blocks, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _check_numbers(dag: AtomicDag, plan: Plan) -> None:
    """Raise `IllegalPlanError` for arrays that do not fit the DAG or stand out of order."""
    if not len(plan.engine) == len(plan.first) == len(plan.last) == dag.tasks:
        raise IllegalPlanError(f"expected an engine and steps for each of {dag.tasks} tasks")
    for what, block in (("transfer", plan.transfers.block), ("residency", plan.residency.block)):
        if len(block) and not (int(block.min()) >= 0 and int(block.max()) < dag.blocks):
            raise IllegalPlanError(f"a {what} of block {int(block.max())}, expected one of {dag.blocks}")
    held, moving = plan.residency, plan.transfers
    if not plan_kernel.ascend(held.block, held.engine, held.start, held.start):
        raise IllegalPlanError("residencies are out of order")
    if not plan_kernel.ascend(moving.first, moving.last, moving.block, moving.source):
        raise IllegalPlanError("transfers are out of order")
    if len(moving) and int(moving.bytes.min()) < 1:
        raise IllegalPlanError(f"transfer {int(moving.bytes.argmin())} moves no bytes")


def _explain(fault: tuple[int, ...], dag: AtomicDag, machine: TiledMachine, net: Topology, plan: Plan) -> str:
    """The fault in words."""
    kind, a, b, c = (int(number) for number in fault)
    moving, held = plan.transfers, plan.residency
    if kind == legality.ENGINE:
        return f"{dag.task_name(a)}: engine {b}, expected one of {machine.engines}"
    if kind == legality.STEPS:
        return f"{dag.task_name(a)}: steps {b} to {c}, expected steps within 0 to {plan.steps - 1}"
    where = f"engine {int(plan.engine[a])}" if kind in _OF_TASKS else ""
    if kind == legality.BUSY:
        return f"{where} runs both {dag.task_name(a)} and {dag.task_name(b)} in step {c}"
    if kind == legality.HELD:
        place = f"residency of {dag.block_name(int(held.block[a]))} on engine {int(held.engine[a])}"
        why = "overlaps the one before it" if b else "lies outside the machine or the steps"
        return f"{place}, steps {int(held.start[a])} to {int(held.end[a])}: {why}"
    if kind == legality.BUFFER:
        limit = machine.engine.buffer_bytes
        return f"buffer of engine {a} holds {c} bytes in step {b}, its size is {limit}"
    if kind == legality.UNSUPPLIED:
        step = int(plan.first[a])
        return f"{dag.task_name(a)}: no capacity for its result on {where} while it runs in step {step}"
    if kind in (legality.MISSING, legality.EARLY):
        reader = f"{dag.task_name(a)} on {where}, step {int(plan.first[a])}"
        if kind == legality.EARLY:
            return f"dependency: {reader} reads {dag.task_name(b)}, which ends in step {int(plan.last[b])}"
        why = "which is not present" if c < 0 else "which arrives later or in part"
        return f"{reader} reads {dag.block_name(b)}, {why}"
    if kind == legality.OUTPUT:
        return f"result of {dag.task_name(a)} leaves the network but is not written to DRAM in full"
    move = (
        f"transfer of {dag.block_name(int(moving.block[a]))} from {net.place_name(int(moving.source[a]))} to "
        f"{net.place_name(int(moving.target[a]))}, steps {int(moving.first[a])} to {int(moving.last[a])}"
    )
    if kind == legality.SOURCE:
        return f"{move}: the source does not hold it at that time"
    if kind == legality.TARGET:
        return f"{move}: the target's buffer has no capacity for it in these steps"
    if kind == legality.STORED:
        return f"{move}: DRAM does not have it by then"
    reasons = ("steps outside the plan", "no such place", "no link between these places", "it is made there")
    return f"{move}: {reasons[b]}"


_OF_TASKS = frozenset((legality.BUSY, legality.UNSUPPLIED, legality.MISSING, legality.EARLY))
