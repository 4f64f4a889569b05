"""Whether warm starts help: time to proof with and without, over suites.

    python -m studies.warm_start --suite dmazerunner --objective edp,energy,cycles

Every layer is proven from scratch, again from the answer of each heuristic, whose own time counts, and again
from the optimum itself, given for nothing: no warm start can do better.  Prints one Markdown row per suite,
machine and start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from studies.time_to_proof import worked
from tilewright.benchmarks.suites import Case, suite
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer


@dataclass(frozen=True, slots=True)
class Run:
    """One layer, proven from one start.

    Parameters
    ----------
    heuristic_s, proof_s : CPU seconds of the heuristic and of the proof after it
    gap : how far the start was above the optimum; ``None`` for no start
    proven : whether the limit was not reached
    mapping : the best mapping in the end
    """

    heuristic_s: float
    proof_s: float
    gap: float | None
    proven: bool
    mapping: Mapping | None

    @property
    def seconds(self) -> float:
        return self.heuristic_s + self.proof_s


def run(
    suites: Annotated[str, typer.Option("--suite", help="comma-separated names")] = "dmazerunner",
    arch: Annotated[str, typer.Option(help="comma-separated machines")] = "dmazerunner-256",
    objective: Annotated[str, typer.Option(help="comma-separated objectives")] = "edp",
    method: Annotated[
        str, typer.Option(help="heuristics, separated by blanks")
    ] = "annealing[walkers=64,steps=60] dmazerunner kapla",
    solver: Annotated[str, typer.Option(help="the exact solver")] = "auto",
    factors: Annotated[str, typer.Option(help="perfect, imperfect, or empty for the default")] = "",
    layers: Annotated[str, typer.Option(help="only layers of these names (glob)")] = "*",
    time_limit: Annotated[float, typer.Option(help="seconds per proof and per heuristic")] = 60.0,
) -> None:
    """Measure and print."""
    methods = method.split()
    _proof_of_nothing(solver)
    print("| suite | machine | layers | start | start, CPU s | its gap | proof | sum | faster layers |")
    print("|---|---|---:|---|---:|---:|---:|---:|---:|")
    for name in suites.split(","):
        for machine in arch.split(","):
            plain: list[Run] = []
            ideal: list[Run] = []
            started: dict[str, list[Run]] = {each: [] for each in methods}
            for case in (case for case in suite(name) if fnmatchcase(case.name, layers)):
                for text in objective.split(","):
                    cell = _problems(case, machine, text, factors or None)
                    plain.append(_from(cell, solver, None, time_limit))
                    ideal.append(_from(cell, solver, None, time_limit, plain[-1].mapping))
                    for each in methods:
                        started[each].append(_from(cell, solver, each, time_limit))
            print(_row(name, machine, "none", plain, plain))
            print(_row(name, machine, "the optimum", ideal, plain))
            for each in methods:
                print(_row(name, machine, f"`{each}`", started[each], plain), flush=True)


def _proof_of_nothing(solver: str) -> None:
    """Loads the solver's libraries, so that no layer pays for them."""
    case = Case("small", parse_layer("gemm:M=2,N=2,K=2")[1])
    solve(_problems(case, "nvdla-256", "edp", None)(), solver)


def _problems(case: Case, machine: str, objective: str, factors: str | None) -> Callable[[], LayerProblem]:
    """What states the layer's problem, anew for every run."""

    def build() -> LayerProblem:
        return layer_problem(case.operator, load_engine(machine), parse_objective(objective), factors=factors)

    return build


def _from(
    build: Callable[[], LayerProblem],
    solver: str,
    method: str | None,
    limit: float,
    start: Mapping | None = None,
) -> Run:
    """One proof, with the heuristic before it on the same problem, as a solver would run it."""
    began = worked()
    problem = build()
    stated = worked()
    if method is not None:
        start = solve(problem, method, Limits(seconds=limit)).answer
    spent = worked() - stated
    warm = [] if start is None else [start]
    result = solve(problem, solver, Limits(seconds=limit), warm_starts=warm)
    took = worked() - began - spent
    gap = None
    if start is not None and result.key is not None:
        gap = float(problem.key_of(problem.evaluate(start)) / result.key - 1)
    return Run(spent, took, gap, result.status in (Status.OPTIMAL, Status.INFEASIBLE), result.answer)


def _row(suite_name: str, machine: str, start: str, runs: list[Run], plain: list[Run]) -> str:
    gaps = [run.gap for run in runs if run.gap is not None]
    gap = f"{100 * sum(gaps) / len(gaps):.1f} %" if gaps else "–"
    faster = sum(run.seconds < base.seconds for run, base in zip(runs, plain, strict=True))
    left = sum(not run.proven for run in runs)
    unproven = f" ({left} not proven)" if left else ""
    spent, proof = sum(run.heuristic_s for run in runs), sum(run.proof_s for run in runs)
    return (
        f"| {suite_name} | {machine} | {len(runs)} | {start} | {spent:.1f} | {gap} | {proof:.1f}{unproven} "
        f"| {spent + proof:.1f} | {'–' if runs is plain else faster} |"
    )


if __name__ == "__main__":
    typer.run(run)
