"""How long each solver takes to prove the optimum, layer by layer.

    python -m studies.time_to_proof --suite dmazerunner --objective edp,energy,cycles

Prints Markdown tables: CPU seconds to the proof, a solver's own processes among them, or the gap left at the
limit; and medians over layers.
"""

from __future__ import annotations

import resource
import statistics
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from tilewright.benchmarks.suites import suite, suite_names
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve


@dataclass(frozen=True, slots=True)
class TimedProof:
    """One layer, objective and solver.

    Parameters
    ----------
    seconds : of the wall, which the limit is for
    cpu_seconds : of the processor, those of a solver's own processes among them
    """

    machine: str
    suite: str
    layer: str
    objective: str
    solver: str
    seconds: float
    cpu_seconds: float
    result: LayerResult

    @property
    def proven(self) -> bool:
        return self.result.status in (Status.OPTIMAL, Status.INFEASIBLE)

    def text(self) -> str:
        """Seconds to proof, or what is left of the gap."""
        if self.proven:
            mark = " (infeasible)" if self.result.status is Status.INFEASIBLE else ""
            return f"{self.cpu_seconds:.2f} s{mark}"
        gap = self.result.gap
        left = "no bound" if gap is None else f"gap {100 * gap:.1f} %"
        return f"{left} at {self.seconds:.0f} s"


def run(
    suites: Annotated[str, typer.Option("--suite", help="comma-separated names, or all")] = "dmazerunner",
    arch: Annotated[str, typer.Option(help="comma-separated machines")] = "dmazerunner-256",
    objective: Annotated[str, typer.Option(help="comma-separated objectives")] = "edp",
    solver: Annotated[str, typer.Option(help="comma-separated solvers")] = "auto",
    factors: Annotated[str, typer.Option(help="perfect, imperfect, or empty for the default")] = "",
    time_limit: Annotated[float, typer.Option(help="seconds per cell")] = 60.0,
    summary: Annotated[bool, typer.Option(help="only medians and maxima per suite")] = False,
) -> None:
    """Measure and print."""
    names = suite_names() if suites == "all" else suites.split(",")
    solvers = solver.split(",")
    cells = [
        cell
        for machine in arch.split(",")
        for name in names
        for text in objective.split(",")
        for cell in _cells(name, machine, text, solvers, factors or None, time_limit)
    ]
    if not summary:
        _print_cells(cells, solvers)
    _print_summary(cells)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of the whole run: {peak:.0f} MiB.")


def worked() -> float:
    """CPU seconds of this process and of its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _cells(
    name: str, machine: str, objective: str, solvers: list[str], factors: str | None, seconds: float
) -> list[TimedProof]:
    engine = load_engine(machine)
    cells: list[TimedProof] = []
    for case in suite(name):
        for solver in solvers:
            started, before = time.monotonic(), worked()
            problem = layer_problem(case.operator, engine, parse_objective(objective), factors=factors)
            result = solve(problem, solver, Limits(seconds=seconds, started=started))
            cells.append(
                TimedProof(
                    machine=machine,
                    suite=name,
                    layer=case.name,
                    objective=objective,
                    solver=solver,
                    seconds=time.monotonic() - started,
                    cpu_seconds=worked() - before,
                    result=result,
                )
            )
    return cells


def _print_cells(cells: list[TimedProof], solvers: list[str]) -> None:
    print("| layer | objective | value | " + " | ".join(solvers) + " |")
    print("|---|---|---:|" + "---:|" * len(solvers))
    for start in range(0, len(cells), len(solvers)):
        row = cells[start : start + len(solvers)]
        known = [cell.result.key for cell in row if cell.result.key is not None]
        value = f"{float(min(known)):.10g}" if known else "–"
        texts = " | ".join(cell.text() for cell in row)
        print(f"| {row[0].layer} | {row[0].objective} | {value} | {texts} |")


def _print_summary(cells: list[TimedProof]) -> None:
    """One row per machine, suite and solver."""
    print("\n| machine | suite | solver | proofs | proven | CPU s: median | worst | sum |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    rows: dict[tuple[str, str, str], list[TimedProof]] = {}
    for cell in cells:
        rows.setdefault((cell.machine, cell.suite, cell.solver), []).append(cell)
    for names, mine in rows.items():
        times = [cell.cpu_seconds for cell in mine]
        proven = sum(cell.proven for cell in mine)
        print(
            f"| {' | '.join(names)} | {len(mine)} | {proven} | {statistics.median(times):.3f} "
            f"| {max(times):.2f} | {sum(times):.1f} |"
        )


if __name__ == "__main__":
    typer.run(run)
