"""What Atomic Dataflow is compared with (sections II-B and V-A): layer-sequential, CNN-partition, inter-layer
pipelining and Rammer-like lists.

All share the sizes of atoms that suit the engines which a layer gets, the routing and the evaluator.
CNN-partition may keep on chip what its paper sends through DRAM, which favours it; ``results=dram`` sends it
there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.coarsening import crowded, workable
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.partitions import (
    cnn_partition,
    layer_work,
    pipeline,
    runs_of_layers,
    spread_layers,
)
from tilewright.heuristics.scheduling.tiled.planning import BUFFERING, PlanHeuristic
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes

CLPS = (2, 3, 4, 6, 8)
DEALT = {"spread": spread_layers, "runs": runs_of_layers}
RESULTS = ("kept", "dram")
ROWS = ("shares", "fine")
DEPTHS = (2, 3, 4, 6, 8)


def shared_dag(search: TiledSearch, room: float) -> AtomicDag:
    """Atoms that share out every layer over all engines, as many as the time that is left allows.

    Where that is a single plan of the coarsest, no menu of smaller ones is made.
    """
    problem, limits = search.problem.problem, search.limits
    if limits.remaining is not None and crowded(problem, limits.remaining):
        room = 1.0
    return workable(problem, balanced_sizes(problem, room=room, limits=limits), room=room, limits=limits)[1]


@dataclass(frozen=True)
class LayerSequential(PlanHeuristic):
    """Layer-sequential: one layer after the other, each shared out over all engines along the zig-zag."""

    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    buffering: str = option("furthest", "which copy leaves a full buffer", choices=tuple(BUFFERING))

    name = "ls"

    def offer(self, search: TiledSearch, source: str = "") -> None:
        """All samples of a layer before the next layer.

        ``source`` is what the trace calls the plan, by default the method.
        """
        problem = search.problem.problem
        dag = shared_dag(search, self.room)
        assignment = layer_sequential(dag, problem.machine)
        self.confirm(search, dag, *assignment, source or self.name, buffering=self.buffering)


@dataclass(frozen=True)
class RammerLists(PlanHeuristic):
    """Rammer-like lists: every step takes the ready atoms with the longest way to the end."""

    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    buffering: str = option("furthest", "which copy leaves a full buffer", choices=tuple(BUFFERING))

    name = "rammer"

    def offer(self, search: TiledSearch) -> None:
        """One list for all engines; an atom goes where most of what it reads was made."""
        problem = search.problem.problem
        dag = shared_dag(search, self.room)
        ordered = list_order(dag, problem.machine, limits=search.limits)
        self.confirm(search, dag, *ordered, self.name, buffering=self.buffering)


@dataclass(frozen=True)
class CnnPartition(PlanHeuristic):
    """CNN-partition: groups of engines for groups of layers, samples pipelined layer by layer."""

    clps: int = option(0, "groups of engines; 0 for the best of 2, 3, 4, 6 and 8", low=0, high=64)
    layers: str = option("spread", "over groups: spread by work, or consecutive runs", choices=tuple(DEALT))
    results: str = option("kept", "results stay on chip, or go through DRAM as in the paper", choices=RESULTS)
    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    buffering: str = option("furthest", "which copy leaves a full buffer", choices=tuple(BUFFERING))

    name = "cnn-p"

    def offer(self, search: TiledSearch) -> None:
        """With one sample nothing can be pipelined, and the method is layer-sequential (section V-B)."""
        problem = search.problem.problem
        machine = problem.machine
        through = self.results == "dram"
        if problem.batch == 1 or machine.engines == 1:
            dag = shared_dag(search, self.room)
            planned = dag, *layer_sequential(dag, machine)
            self.confirm(search, *planned, self.name, buffering=self.buffering, through_dram=through)
            return
        work = layer_work(problem)
        most = min(machine.engines, len(work))
        counts = (
            [count_tried for count_tried in CLPS if count_tried <= most] or [1]
            if self.clps == 0
            else [min(self.clps, most)]
        )
        for count in counts:
            if search.done:
                return
            home = DEALT[self.layers](work, count)
            planned = cnn_partition(problem, work, count, room=self.room, home=home, limits=search.limits)
            source = f"{self.name} {count} groups"
            self.confirm(search, *planned, source, buffering=self.buffering, through_dram=through)


@dataclass(frozen=True)
class InterLayerPipeline(PlanHeuristic):
    """Inter-layer pipelining: neighbouring layers on neighbouring regions, pipelined atom by atom."""

    depth: int = option(0, "layers of a segment; 0 for the best of 2, 3, 4, 6 and 8", low=0, high=64)
    rows: str = option("best", "rows cut finely, or as shares ask for", choices=("best", *ROWS))
    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    buffering: str = option("furthest", "which copy leaves a full buffer", choices=tuple(BUFFERING))

    name = "il-pipe"

    def offer(self, search: TiledSearch) -> None:
        """Inside a segment a layer begins when the first atoms before it are done."""
        problem = search.problem.problem
        work = layer_work(problem)
        most = problem.machine.engines
        depths = (
            [stages for stages in DEPTHS if stages <= most] or [1]
            if self.depth == 0
            else [min(self.depth, most)]
        )
        for depth in depths:
            for rows in ROWS if self.rows == "best" else (self.rows,):
                if search.done:
                    return
                planned = pipeline(
                    problem, work, depth, room=self.room, fine=rows == "fine", limits=search.limits
                )
                source = f"{self.name} {depth} layers, {rows} rows"
                self.confirm(search, *planned, source, buffering=self.buffering)
