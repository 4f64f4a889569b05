"""The machine code of plans: their DAGs, completion, evaluation, bounds, and the methods on atoms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilewright.formulation.scheduling.tiled import (
    completion_kernel,
    copies_kernel,
    counting_sort,
    eviction_kernel,
    legality_kernel,
    paths,
    plan_kernel,
    ports_kernel,
    timing_kernel,
    uses_kernel,
)
from tilewright.formulation.scheduling.tiled.completion import complete
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import (
    levelling_kernel,
    levelling_loads,
    lists,
    partitions,
    placement,
)
from tilewright.heuristics.scheduling.tiled.levelling import levelled
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS
from tilewright.solvers.scheduling.tiled import ancestors
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.compiling import Kernels
from tilewright.solvers.scheduling.tiled.exact import label_kernel, round_length_kernel, sequence_kernel
from tilewright.solvers.scheduling.tiled.exact.counts import Counts, twins
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.sequences import searched
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


def calls() -> Iterator[None]:
    """Call everything once, in the types that searches have, on a network of two layers."""
    operator = conv2d(k=16, c=16, r=3, s=3, h=4, w=4, pad=1)
    layers = [Layer(name, operator, "compiling") for name in ("a", "b")]
    network = Network("two layers", layers, [Link("a", "b", "I", "x", 256)])
    problem = TiledProblem(network, load_tiled_machine("atomic-2x2"), tiled_objective("makespan"))
    machine = problem.machine
    dag = problem.dag([AtomSize(2, 4, 8, 16)] * 2)
    yield
    engine, step = lists.layer_sequential(dag, machine)
    lists.list_order(dag, machine)
    yield
    for how in MAPPINGS:
        placement.place(dag, machine, step, how)
        yield
    partitions.pipeline(problem, partitions.layer_work(problem), 2, room=0.5)
    yield
    dag_bounds(dag, machine)
    yield
    instance = RoundInstance(dag, machine)
    searched(Counts(instance, twins(instance)), 1, lambda: False, lambda _: None, labels=1)
    yield
    plan = complete(dag, machine, engine, step)
    yield
    problem.evaluate(dag, plan)
    yield
    levelled(dag, machine, plan)


PLANS: Final = Kernels(
    (
        ancestors,
        completion_kernel,
        copies_kernel,
        counting_sort,
        eviction_kernel,
        label_kernel,
        legality_kernel,
        levelling_kernel,
        levelling_loads,
        lists,
        partitions,
        paths,
        placement,
        plan_kernel,
        ports_kernel,
        round_length_kernel,
        sequence_kernel,
        timing_kernel,
        uses_kernel,
    ),
    calls,
)
"""What every method on tiled machines needs."""
