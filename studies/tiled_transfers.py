"""Transfers of a given order: CP-SAT with its bound beside SoMa's annealing, on settings of SoMa's cases, as a table.

    python -m studies.tiled_transfers --seconds 20

Each plan is the best of SET's annealing (the first stage of SoMa's).  Both methods get its order and places and the
same seconds of the processor, one thread.  `one step` lets each transfer take one step, which is the space of CP-SAT's
bound; `spread` lets it take several.  The evaluator judges all plans.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import FromPlan
from tilewright.workloads.catalog import resolve_model

HEAD = (
    "| network | system | atoms | plan | annealing, one step | CP-SAT | bound | gap | annealing, spread |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One setting.

    Parameters
    ----------
    network, system : by name
    seconds : of the processor, for each search
    seed : of the annealing
    """

    network: str
    system: str
    seconds: float
    seed: int

    def line(self) -> str:
        """One row of the table."""
        problem = TiledProblem(
            resolve_model(self.network, 1), load_tiled_machine(self.system), tiled_objective("makespan"), 1
        )
        first = self._search(problem)
        METHODS.make("set-sa").solve(first)
        given = first.answer
        if given is None:
            return f"| {self.network} | {self.system} | no plan |"
        annealed = self._of_order(problem, f"soma[spread=1]", given)
        proven = self._of_order(problem, "transfers[atoms=1024]", given)
        spread = self._of_order(problem, "soma", given)
        begun, gap = problem.evaluate(given.dag, given.plan).cycles, proven.gap
        cells = (
            self.network,
            self.system,
            str(given.dag.tasks),
            f"{begun:,}",
            *(f"{int(found.key):,}" if found.key else "-" for found in (annealed, proven)),
            f"{int(proven.bound):,}" if proven.bound else "-",
            "-" if gap is None else f"{100 * gap:.1f} %",
            f"{int(spread.key):,}" if spread.key else "-",
        )
        return f"| {' | '.join(cells)} |"

    def _search(self, problem: TiledProblem) -> TiledSearch:
        return TiledSearch(
            TiledGoal(problem), Limits(self.seconds, threads=1, seed=self.seed, clock=time.process_time)
        )

    def _of_order(self, problem: TiledProblem, method: str, given: AtomicPlan) -> TiledSearch:
        """A search over the transfers of a plan's order."""
        search, planner = self._search(problem), METHODS.make(method)
        assert isinstance(planner, FromPlan)
        planner.solve_from(search, given)
        print(method, search.key, search.bound, search.limits.elapsed, [(p.source, round(p.seconds,1), p.key) for p in search.trace][-3:])
        return search


CASES = (
    ("resnet50", "soma-edge[dram=4]"),
    ("resnet50", "soma-edge[dram=16]"),
    ("resnet50", "soma-edge[dram=64]"),
    ("resnet50", "soma-edge[dram=128]"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of the processor, for each search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=len(CASES), help="how many of them")
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for network, system in CASES[: asked.cases]:
        print(Case(network, system, asked.seconds, asked.seed).line(), flush=True)


if __name__ == "__main__":
    main()
