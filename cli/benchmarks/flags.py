"""Flags that verbs with many runs share, and who computes the runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.workloads.errors import InputError

if TYPE_CHECKING:
    from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer
    from tilewright.benchmarks.run import Answers
    from tilewright.solvers.pool import Work

Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", help="Runs side by side; one per core by default.", rich_help_panel="Execution"
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="Run on this Dask cluster instead.", rich_help_panel="Execution"
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Run again what the store has.", rich_help_panel="Execution")
]
Seeds = Annotated[
    int, typer.Option("--seeds", help="Runs of methods that draw at random.", rich_help_panel="Search")
]


def check_workers(jobs: int | None, cluster: str | None) -> None:
    """Raise ``InputError`` where both a cluster and a number of processes are named."""
    if cluster is not None and jobs is not None:
        raise InputError("--jobs", None, "the cluster decides how much runs side by side, expected no --jobs")


def answers_of(work: Work[BenchmarkTask, CellAnswer], jobs: int, cluster: str | None) -> Answers:
    """Who computes tasks: processes of this machine, or a cluster."""
    from tilewright.solvers.cluster import cluster_answers, connected
    from tilewright.solvers.pool import local_answers

    if cluster is None:
        return partial(local_answers, work, jobs)
    return partial(cluster_answers, work, connected(cluster))
