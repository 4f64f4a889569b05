"""Flags that verbs with many runs share, and who computes the runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer
    from tilewright.benchmarks.run import Answers
    from tilewright.foundation.pool import Work

Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Run again, even if the store has results.", rich_help_panel="Execution"),
]
Seeds = Annotated[
    int, typer.Option("--seeds", help="Runs of methods with random choices.", rich_help_panel="Search")
]
RunLimit = Annotated[
    str, typer.Option("--time-limit", "-t", metavar="TIME", help="Per run.", rich_help_panel="Search")
]


def answers_of(work: Work[BenchmarkTask, CellAnswer], jobs: int, cluster: str | None) -> Answers:
    """Who computes tasks: processes of this machine, or a cluster."""
    from tilewright.foundation.cluster import cluster_answers, connected
    from tilewright.foundation.pool import local_answers

    if cluster is None:
        return partial(local_answers, work, jobs)
    return partial(cluster_answers, work, connected(cluster))
