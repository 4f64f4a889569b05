"""Exit codes of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the process."""

    OK = 0  #: a solution was written
    ERROR = 1  #: something failed
    USAGE = 2  #: usage or bad input
    INFEASIBLE = 3  #: no solution exists
    LIMIT = 4  #: a limit was reached without a solution
    CHECK_FAILED = 5  #: a result does not hold
    NOT_OPTIMAL = 6  #: ``--require-optimal`` was not met
    INTERRUPTED = 130  #: stopped by the user before everything that was asked for was there


def reason(status: str, message: str, *, solved: bool, gap: float | None = None) -> str:
    """Why a search did not end as it should, in a few words for those who see no progress and no results.

    Parameters
    ----------
    status, message : of the search
    solved : whether it has an answer, which is then not proven optimal
    gap : what is left between value and bound, where both are known
    """
    if message:
        return message if status == "error" else f"{status}: {message}"
    if solved:
        return f"{status}, not proven optimal" + ("" if gap is None else f" (gap {100 * gap:.2g} %)")
    return {
        "error": "the solver failed",
        "infeasible": "infeasible",
        "interrupted": "interrupted before there was an answer",
    }.get(status, "a limit was reached before there was an answer")


def exit_of_layers(
    statuses: Iterable[tuple[str, bool]], *, interrupted: bool, missing: bool, require_optimal: bool
) -> Exit:
    """The exit code of a run over several layers.

    Parameters
    ----------
    statuses : per layer its status, and whether it has a solution
    interrupted : whether the user stopped the run; a layer that has a mapping is there all the same
    missing : whether layers were left out
    """
    answers = list(statuses)
    unsolved = {status for status, solved in answers if not solved}
    if interrupted and (missing or unsolved & {"interrupted", "unknown"}):
        return Exit.INTERRUPTED
    for status, code in (("error", Exit.ERROR), ("infeasible", Exit.INFEASIBLE)):
        if status in unsolved:
            return code
    if unsolved:
        return Exit.LIMIT
    if require_optimal and (missing or any(status != "optimal" for status, _ in answers)):
        return Exit.NOT_OPTIMAL
    return Exit.OK
