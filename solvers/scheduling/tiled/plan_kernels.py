"""Machine code of plans: their DAGs, routing and residency, evaluation, bounds, and the methods on atoms."""

from __future__ import annotations

from typing import Final

import numpy as np

from tilewright.formulation.scheduling.tiled import (
    counting_sort,
    legality_kernel,
    ordering_kernel,
    paths,
    plan_kernel,
    routing_kernel,
    timing_kernel,
    uses_kernel,
)
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import (
    lists,
    movements_kernel,
    partitions,
    placement,
    smoothing_kernel,
)
from tilewright.heuristics.scheduling.tiled.layouts import (
    accounts,
    cuts_kernel,
    elimination_kernel,
    flows,
    journeys,
    ways_kernel,
)
from tilewright.heuristics.scheduling.tiled.layouts.accounts import layer_accounts
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.movements import movements_of
from tilewright.heuristics.scheduling.tiled.smoothing import smoothed
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS
from tilewright.solvers.compiling import Kernels
from tilewright.solvers.scheduling.tiled import ancestors
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.exact import remainder_kernel, sequence_kernel
from tilewright.solvers.scheduling.tiled.exact.counts import Counts, twins
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.sequences import searched
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


def _example() -> tuple[TiledProblem, AtomicDag]:
    """A network of two layers, cut into atoms."""
    operator = conv2d(k=16, c=16, r=3, s=3, h=4, w=4, pad=1)
    layers = [Layer(name, operator, "compiling") for name in ("a", "b")]
    network = Network("two layers", layers, [Link("a", "b", "I", "x", 256)])
    problem = TiledProblem(network, load_tiled_machine("atomic-2x2"), tiled_objective("makespan"))
    return problem, problem.dag([AtomSize(2, 4, 8, 16)] * 2)


def _plan() -> None:
    problem, dag = _example()
    problem.evaluate(dag, complete(dag, problem.machine, *lists.layer_sequential(dag, problem.machine)))


def _search() -> None:
    problem, dag = _example()
    machine = problem.machine
    engine, step = lists.layer_sequential(dag, machine)
    plan = complete(dag, machine, engine, step)
    smoothed(dag, machine, plan)
    movements = movements_of(dag, machine, plan, spread=1)
    if movements is not None:
        movements.cost()
        movements.plan()
        movements.kept()
    layer_accounts(problem, AtomicPlan(dag, plan))
    instance = RoundInstance(dag, machine)
    searched(Counts(instance, twins(instance)), 1, lambda: False, lambda _: None, labels=1)
    dag_bounds(dag, machine)
    lists.list_order(dag, machine)
    for how in MAPPINGS:
        placement.place(dag, machine, step, how)
    LayoutChoice(problem, 1.0, room=0.5, most=4)
    elimination_kernel.most_beyond(np.zeros((2, 2)), np.arange(2))
    elimination_kernel.least_sums(np.zeros((2, 2)), np.zeros((2, 2)))
    partitions.pipeline(problem, partitions.layer_work(problem), 2, room=0.5)


PLANS: Final = Kernels(
    (__name__, "PLANS"),
    (
        routing_kernel.complete,
        counting_sort.counting_sort,
        legality_kernel.check,
        ordering_kernel.residency_order,
        ordering_kernel.transfer_order,
        plan_kernel.ascend,
        plan_kernel.multicasts,
        timing_kernel.reuse,
        timing_kernel.run,
        uses_kernel.uses_of,
    ),
    _plan,
)
"""What every plan on a tiled machine needs, and all that the quickest methods need."""

ATOMS: Final = Kernels(
    (__name__, "ATOMS"),
    (
        accounts._transfer_energy,
        ancestors._heads,
        cuts_kernel.best_cuts,
        elimination_kernel.least_sums,
        elimination_kernel.most_beyond,
        flows._longest,
        journeys._priced,
        ways_kernel.places,
        ways_kernel.ways,
        smoothing_kernel.level,
        lists._list_order,
        lists._successors,
        movements_kernel.columns_of,
        movements_kernel.judged,
        movements_kernel.stored_results,
        partitions._place_in_regions,
        paths._paths,
        placement._costs,
        placement._nearest,
        placement._remember,
        plan_kernel.holdings,
        remainder_kernel.weigh,
        sequence_kernel.advance,
    ),
    _search,
)
"""What orders, places, levels and bounds atoms."""
