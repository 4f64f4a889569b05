"""Transfers of a given order: CP-SAT with its bound beside SoMa's annealing, on settings of SoMa's cases.

    python -m studies.tiled_transfers --seconds 10

Each plan is the best of SET's annealing, the first stage of SoMa's.  Both methods get its order and places
and the same seconds of the processor, one thread.  By *one step* each transfer takes one step, which is the
space of CP-SAT's bound; *spread* lets it take several.  The evaluator judges all plans.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.exact.space import as_round_plan
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import FromPlan
from tilewright.workloads.catalog import resolve_model

HEAD = (
    "| network | system | atoms | plan | as rounds | `soma[spread=1]` | `transfers` | bound | gap "
    "| `soma` |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


CASES = (
    ("resnet50", "soma-edge[dram=4]"),
    ("resnet50", "soma-edge"),
    ("resnet50", "soma-edge[dram=64]"),
    ("resnet101", "soma-edge"),
    ("inception-resnet-v1", "soma-edge"),
    ("resnet50", "soma-cloud"),
)
"""Networks of batch 1 and machines; both platforms have 1 GB/s of DRAM per TOPS by default."""


def searched(
    problem: TiledProblem, method: str, limits: Limits, given: AtomicPlan | None = None
) -> TiledSearch:
    """A search that a method has ended, from a plan where there is one.

    Parameters
    ----------
    problem : the network on the machine
    method, limits : what searches, and for how long
    given : whose order and places stand
    """
    planner = METHODS.make(method)
    search = TiledSearch(TiledGoal(problem), limits, exact=planner.exact)
    if given is None:
        planner.solve(search)
    elif isinstance(planner, FromPlan):
        planner.solve_from(search, given)
    return search


def line(network: str, system: str, seconds: float, seed: int) -> str:
    """One row of the table.

    Parameters
    ----------
    network, system : by name
    seconds : of the processor, for each search
    seed : of the annealing
    """
    objective = tiled_objective("makespan")
    problem = TiledProblem(resolve_model(network, 1), load_tiled_machine(system), objective, 1)

    def limits() -> Limits:
        return Limits(seconds, threads=1, seed=seed, clock=time.process_time)

    given = searched(problem, "set-sa", limits()).answer
    if given is None:
        raise InputError("network", network, "no plan of it was found")
    rounds = AtomicPlan(given.dag, as_round_plan(given.dag, given.plan, problem.machine.engines))
    proven = searched(problem, f"transfers[atoms={given.dag.tasks}]", limits(), rounds)
    steps = searched(problem, "soma[spread=1]", limits(), rounds)
    spread = searched(problem, "soma", limits(), given)
    cells = (
        network,
        system,
        str(given.dag.tasks),
        *(f"{problem.evaluate(given.dag, plan.plan).cycles:,}" for plan in (given, rounds)),
        *("-" if key is None else f"{int(key):,}" for key in (steps.key, proven.key, proven.bound)),
        "-" if proven.gap is None else f"{100 * proven.gap:.1f} %",
        "-" if spread.key is None else f"{int(spread.key):,}",
    )
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of the processor, for each search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="*", help="a pattern of networks and machines, such as 'resnet50 *'"
    )
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for network, system in CASES:
        if fnmatchcase(f"{network} {system}", asked.only):
            print(line(network, system, asked.seconds, asked.seed), flush=True)


if __name__ == "__main__":
    main()
