"""Methods on tiled machines against each other and against two bounds, as a table.

    python -m studies.tiled resnet50 vgg19 --seconds 60

For every network and link width, each method's cycles, the least that its own atoms allow, and the least over
all sizes of atoms.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.catalog import resolve_model

PAPER = "atomic[atoms=printed,order=rules,mapping=permutations,buffering=occupation,refine=off]"
"""The stages as Atomic Dataflow prints them."""

METHODS = ("ls", "cnn-p", "il-pipe", "rammer", PAPER, "atomic[refine=off]", "atomic")
LINKS = (8, 16, 32)
_NAMES = {PAPER: "atomic, as printed", "atomic[refine=off]": "atomic, without climbing"}


@dataclass(frozen=True, slots=True)
class Row:
    """What one method reached on one network and machine.

    Parameters
    ----------
    cycles, atoms : of its plan
    own_bound : cycles that no plan of its atoms undercuts
    bound : cycles that no plan undercuts
    seconds : until its best plan
    """

    network: str
    batch: int
    link: int
    method: str
    atoms: int
    cycles: int
    own_bound: int
    bound: int
    seconds: float

    def text(self) -> str:
        """As a line of a table."""
        own, free = (1 - low / self.cycles for low in (self.own_bound, self.bound))
        cells = (
            self.network,
            str(self.batch),
            str(self.link),
            _NAMES.get(self.method, self.method),
            f"{self.atoms:,}",
            f"{self.cycles:,}",
            f"{100 * own:.1f} %",
            f"{100 * free:.1f} %",
            f"{self.seconds:.1f}",
        )
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| network | batch | B/cycle | method | atoms | cycles | gap, its atoms | gap, all sizes | s |\n"
    "|---|---:|---:|---|---:|---:|---:|---:|---:|"
)


def measure(
    networks: Sequence[str], links: Sequence[int], methods: Sequence[str], batch: int, seconds: float
) -> Iterator[Row]:
    """Run every method everywhere, one after the other.

    Raises
    ------
    RuntimeError : where a method finds no plan in time
    """
    for name in networks:
        network = resolve_model(name, 1)
        for link in links:
            machine = load_tiled_machine(f"atomic-8x8[link={link}]")
            problem = TiledProblem(network, machine, tiled_objective("makespan"), batch=batch)
            for method in methods:
                yield _row(problem, link, method, seconds)


def _row(problem: TiledProblem, link: int, method: str, seconds: float) -> Row:
    result = plan_run(lambda: problem, method, Limits(seconds)).run()
    if result.answer is None or result.evaluation is None or result.bound is None:
        raise RuntimeError(f"{method} on {problem.network.name}: {result.status} {result.message}")
    return Row(
        network=problem.network.name,
        batch=problem.batch,
        link=link,
        method=method,
        atoms=result.answer.dag.tasks,
        cycles=result.evaluation.cycles,
        own_bound=dag_bounds(result.answer.dag, problem.machine).cycles,
        bound=int(result.bound),
        seconds=max(point.seconds for point in result.trace if point.improved),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for, and print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each search")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--links", type=int, nargs="+", default=list(LINKS), help="bytes per cycle")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for row in measure(asked.networks, asked.links, asked.methods, asked.batch, asked.seconds):
        print(row.text(), flush=True)


if __name__ == "__main__":
    main()
