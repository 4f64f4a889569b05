"""Plans to begin a search with, from documents."""

from __future__ import annotations

from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.errors import InputError
from tilewright.report.records.scheduling.tiled.files import edited_plan, is_plan, stated_again


def warm_plan(data: object, where: str, problem: TiledProblem) -> AtomicPlan:
    """The plan of a document on a problem, which may have another machine, objective or number of links.

    Raises
    ------
    InputError : for what is no plan, one of another network, batch or grid, and one that is illegal on the
        problem's machine
    """
    if not is_plan(data):
        raise InputError(where, "schema", "expected a plan on a tiled machine, of tilewright.plan/1")
    assert isinstance(data, dict)
    edited = edited_plan(data, where, "makespan")
    given_problem, wanted = edited.problem, problem
    reported = (
        ("network", given_problem.network.name, wanted.network.name),
        ("batch", given_problem.batch, wanted.batch),
    )
    grids = [
        f"{given.machine.engines} engines and {len(given.machine.dram_ports)} DRAM ports"
        for given in (given_problem, wanted)
    ]
    for what, given, other in (*reported, ("machine", *grids)):
        if given != other:
            raise InputError(where, "problem", f"is of another {what}: {given}, expected {other}")
    try:
        answer = stated_again(edited, wanted, f"{where}: plan").completed()
        wanted.evaluate(answer.dag, answer.plan)
    except IllegalPlanError as fault:
        raise InputError(where, "plan", f"is illegal on {wanted.machine.name}: {fault}") from None
    return answer
