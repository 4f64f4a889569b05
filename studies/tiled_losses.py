"""What each stage of Atomic Dataflow's pipeline loses against the best round plan, as a table.

    python -m studies.tiled_losses --seconds 30

Of each graph the best round plan of its atoms is sought.  Then one stage at a time is the paper's; the stages
before it are those of the best plan, and all that follows from it is chosen best:

order : algorithm 2's rounds; places and movements chosen best
places : the best plan's rounds, engines by equation 2's permutations; movements chosen best
buffers : the best plan's rounds and engines; movements by routing and residency with algorithm 3
atoms : the printed algorithm 1's sizes, the other stages of `atomic` as they are by default; in brackets
    the bound of those atoms, below which no order, places and buffers bring them
pipeline : the printed method as a whole, its own atoms included

Where the best plan is not proven, losses are against the best one known.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from contextlib import suppress

from studies.tiled import PAPER
from studies.tiled_graphs import (
    BLOCKS,
    MACHINE,
    SmallGraph,
    block,
    machine_of,
    rows_of_layers,
    unequal_layers,
)
from studies.tiled_proofs import proven
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.arrays import Int32s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes
from tilewright.heuristics.scheduling.tiled.placement import place
from tilewright.heuristics.scheduling.tiled.rounds import RoundOrder
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.exact.decode import plan_of
from tilewright.solvers.scheduling.tiled.exact.incumbent import PLACES
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, as_round_plan
from tilewright.solvers.scheduling.tiled.exact.statement import plan_statement
from tilewright.solvers.scheduling.tiled.exact.variables import Given
from tilewright.solvers.scheduling.tiled.running import plan_run

ATOMS = "atomic[atoms=printed,refine=off]"
"""The paper's sizes, and the other stages as they are by default."""

HEAD = (
    "| graph | best | | order | places | buffers | atoms (bound) | pipeline |\n"
    "|---|---:|---|---:|---:|---:|---:|---:|"
)


def best_of(graph: SmallGraph, order: Int32s, places: Int32s | None, seconds: float) -> int | None:
    """Cycles of the best plan found with these rounds and engines; ``None`` where there is none."""
    dag, machine = graph.dag, graph.problem.machine
    space = RoundSpace(graph.problem, dag)
    lengths: list[int] = []
    for how in PLACES if places is None else ("",):
        engine = place(dag, machine, order, how) if places is None else places
        with suppress(IllegalPlanError):
            plan = as_round_plan(dag, complete(dag, machine, engine, order, ahead=1), machine.engines)
            if space.outside(AtomicPlan(dag, plan)) is None:
                lengths.append(graph.problem.evaluate(dag, plan).cycles)
    most = min(lengths, default=1 << 24) - 1
    instance = RoundInstance(graph.dag, graph.problem.machine)
    engines = None if places is None else places.tolist()
    rounds = order.tolist()
    statement = plan_statement(instance, max(rounds) + 2, 0, 0, most, given=Given(rounds, engines))
    run = CpSatRun(statement.model, Limits(seconds, threads=1), lambda: False)
    run.solve()
    if not run.has_solution:
        return min(lengths, default=None)
    return graph.problem.evaluate(graph.dag, plan_of(statement, run.solver)).cycles


def losses(graph: SmallGraph, seconds: float) -> str:
    """One row: the best plan, and what each stage costs more, in percent."""
    problem, dag, machine = graph.problem, graph.dag, graph.problem.machine
    search = proven(graph, seconds, threads=1)
    if search.answer is None or search.key is None:
        return f"| {graph.name} | none | | | | | | |"
    best, plan = int(search.key), search.answer.plan
    rounds = RoundOrder(dag, machine.engines, 1, 2).steps()
    ordered = best_of(graph, rounds, None, seconds / 2)
    permuted = place(dag, machine, plan.first, "permutations")
    placed = best_of(graph, plan.first, permuted, seconds / 2)
    buffered: int | None
    try:
        completed = complete(dag, machine, plan.engine, plan.first, eviction="occupation")
        buffered = problem.evaluate(dag, completed).cycles
    except IllegalPlanError:
        buffered = None
    annealed = problem.dag(annealed_sizes(problem, random.Random(0), Annealing(printed=True)))
    shown = [ordered, placed, buffered]
    for method in (ATOMS, PAPER):
        result = plan_run(lambda: problem, method, Limits(seconds, threads=1)).run()
        shown.append(None if result.evaluation is None else result.evaluation.cycles)
    least = dag_bounds(annealed, machine).cycles
    cells = ["-" if length is None else f"{100 * (length / best - 1):+.1f} %" for length in shown]
    cells[3] += f" ({100 * (least / best - 1):+.1f} %)"
    gap = "proven" if search.proven else f"gap {100 * (search.gap or 0):.1f} %"
    return f"| {graph.name} | {best:,} | {gap} | {' | '.join(cells)} |"


def graphs(machine: TiledMachine) -> list[SmallGraph]:
    """The set of small graphs."""
    drawn = [rows_of_layers(*shape, machine) for shape in ((10, 4), (4, 6), (3, 5))]
    drawn += [unequal_layers(20, 0, machine)]
    return drawn + [block(name, machine, 24) for name in BLOCKS]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="for the best plan of each graph")
    parser.add_argument("--machine", default=MACHINE)
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for graph in graphs(machine_of(asked.machine, free=False)):
        print(losses(graph, asked.seconds), flush=True)


if __name__ == "__main__":
    main()
