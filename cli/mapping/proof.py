"""A second opinion: another solver looks for anything better than what a result claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from threading import Event
from typing import Any

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.formulation.stopping import WhenSet
from tilewright.report.checks.mapping.document import refutes
from tilewright.report.records.mapping.document import LayerRecord
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.repeated_solves import tied
from tilewright.solvers.mapping.solve import AUTO, layer_run
from tilewright.workloads.errors import InputError

_PORTFOLIO = {AUTO, "branch"}
_ENUMERABLE = 2_000_000
"""Mappings up to which enumerating them all comes first."""


class Verdict(StrEnum):
    """What the other solver says of a claim."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOTHING = "nothing claimed"


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict, by whom, and what it rests on."""

    verdict: Verdict
    solver: str
    text: str
    seconds: float = 0.0


STYLES = {"holds": "green", "fails": "bold red", "confirmed": "green", "refuted": "bold red"}
"""Of words and verdicts in tables; yellow for any other."""


def proof_data(proof: Proof) -> dict[str, Any]:
    """A proof as plain data."""
    return {
        "verdict": proof.verdict.value,
        "solver": proof.solver,
        "message": proof.text,
        "wall_s": round(proof.seconds, 4),
    }


def proof_solvers(problem: LayerProblem, recorded: str) -> list[str]:
    """The exact solvers other than the recorded one, in the sequence in which they are asked.

    Enumeration comes first where the space is small, and last elsewhere.  The portfolio begins with branch
    and bound, so neither is a second opinion on the other.
    """
    same = _PORTFOLIO if recorded in _PORTFOLIO else {recorded, AUTO}
    others = [name for name in SOLVERS.names() if name not in same and _is_exact(name)]
    small = problem.space.size <= _ENUMERABLE
    others.sort(key=lambda name: (name == "exhaustive") != small)
    return others


def _is_exact(name: str) -> bool:
    try:
        return SOLVERS.make(name).exact
    except (ImportError, AttributeError):
        return False


def prove(layer: LayerRecord, problem: LayerProblem, limits: Limits) -> Proof:
    """Ask other solvers, one after the other, until one decides.

    The claim is confirmed by a bound of at least the claimed one (or a proof that nothing exists), and
    refuted by a mapping below it.  What is claimed of a second objective is asked after the first.
    """
    if layer.bound_key is None and layer.status != "infeasible":
        return Proof(Verdict.NOTHING, "-", "no bound is claimed")
    for mapping in _incumbent(layer):
        reason = _strange(problem, mapping)
        if reason is not None:
            return Proof(Verdict.REFUTED, "-", reason)
    answer = _prove(layer, problem, limits)
    if answer.verdict is not Verdict.CONFIRMED or layer.then is None or layer.then.bound_exact is None:
        return answer
    second = parse_objective(layer.then.objective)
    among = tied(problem, Fraction(layer.value_exact or 0), second)
    claim = layer.model_copy(
        update={"bound_exact": layer.then.bound_exact, "value_exact": layer.then.value_exact}
    )
    other = _prove(claim, among, limits)
    text = f"{answer.text}; {second} after it: {other.text}"
    by = answer.solver if other.solver in (answer.solver, "-") else f"{answer.solver}, {other.solver}"
    return Proof(other.verdict, by, text, answer.seconds + other.seconds)


def _strange(problem: LayerProblem, mapping: Mapping) -> str | None:
    """Why the mapping of a claim is none of its space."""
    try:
        mapping.validate(problem.operator, problem.engine)
        reason = problem.outside(mapping)
    except InputError as error:
        return str(error)
    return None if reason is None else f"the mapping lies outside the space of the claim: {reason}"


def _prove(layer: LayerRecord, problem: LayerProblem, limits: Limits) -> Proof:
    """Ask one solver after the other for a layer's first claim."""
    answer = Proof(Verdict.UNDECIDED, "-", "no other exact solver")
    for name in proof_solvers(problem, layer.solver):
        if limits.expired:
            break
        answer = _ask(name, layer, problem, limits)
        if answer.verdict is not Verdict.UNDECIDED:
            break
    return answer


def _ask(name: str, layer: LayerRecord, problem: LayerProblem, limits: Limits) -> Proof:
    claimed = layer.bound_key
    decided = Event()

    def listen(point: TracePoint) -> None:
        if refutes(point.key, claimed, layer.status) or _reached(point.bound, claimed):
            decided.set()

    watched = replace(limits, gap=0.0).stopping(WhenSet(decided))
    before = limits.elapsed
    result = layer_run(lambda: problem, name, watched, listen, _incumbent(layer)).run()
    spent = limits.elapsed - before
    bounds = [result.bound, *(point.bound for point in result.trace[-1:])]
    if refutes(result.key, claimed, layer.status):
        return Proof(Verdict.REFUTED, name, f"found a mapping of value {_shown(problem, result.key)}", spent)
    if layer.status == "infeasible":
        if result.status is Status.INFEASIBLE:
            return Proof(Verdict.CONFIRMED, name, "proves that there is no mapping", spent)
    elif result.status is Status.INFEASIBLE:
        return Proof(Verdict.REFUTED, name, "claims that there is no mapping at all", spent)
    elif any(_reached(bound, claimed) for bound in bounds):
        return Proof(Verdict.CONFIRMED, name, "proves a bound at least as high", spent)
    reason = result.message or ("interrupted" if limits.stop.is_set() else "time limit")
    return Proof(Verdict.UNDECIDED, name, reason, spent)


def _reached(bound: Fraction | None, claimed: Fraction | None) -> bool:
    return bound is not None and claimed is not None and bound >= claimed


def _shown(problem: LayerProblem, key: Fraction | None) -> object:
    return None if key is None else problem.objective.value(key)


def _incumbent(layer: LayerRecord) -> Sequence[Mapping]:
    return [] if layer.mapping is None else [Mapping.from_data(layer.mapping.nodes)]
