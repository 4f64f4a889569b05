"""A second opinion on the designs of an exploration, whose mappings its document does not tell.

Every layer of a design is solved again, by an exact solver other than the one that is recorded.  Sums of the
bounds and of the values that are found then decide what is claimed of the design.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.network_objective import NetworkObjective
from tilewright.formulation.result import Status
from tilewright.solvers.mapping.answers.second_opinion import proof_solvers
from tilewright.solvers.mapping.solve import layer_run
from tilewright.solvers.second_opinion import Proof, Verdict

LONGEST = 60.0
"""Seconds of a layer on a design, where the call has no limit."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What another solver found of a layer on a design.

    Parameters
    ----------
    best : energy in pJ and cycles of its best mapping
    bound : of its key
    infeasible : whether it is proven that it has none
    """

    best: tuple[Fraction, int] | None = None
    bound: Fraction | None = None
    infeasible: bool = False


State = Callable[[int, int], LayerProblem]
"""States the problem of a layer on a design, by their places."""


@dataclass(frozen=True, slots=True)
class DesignClaim:
    """What a document claims of one design, or of one layer on it.

    Parameters
    ----------
    counts : how often each layer counts in a value
    least_counts : and in a bound
    key : that mappings of the layers have
    bound : below which no mappings are
    infeasible : whether it is claimed that a layer has no mapping
    """

    index: int
    counts: Sequence[int]
    least_counts: Sequence[int]
    key: Fraction | None
    bound: Fraction | None
    infeasible: bool = False


@dataclass
class DesignProofs:
    """Second opinions on designs of one exploration; a layer on a design is solved once.

    Parameters
    ----------
    objective : what is minimised over all layers
    solver : that the document records
    limits : of all of them together
    """

    state: State
    objective: NetworkObjective
    solver: str
    limits: Limits
    _known: dict[tuple[int, int], Figures] = field(default_factory=dict)

    def prove(self, claim: DesignClaim, share: float = 1.0) -> Proof:
        """Ask whether what is claimed of a design holds.

        Parameters
        ----------
        share : of the time that is left
        """
        before = self.limits.elapsed
        verdict, text = self._verdict(claim, share)
        return Proof(verdict, "layers solved anew", text, self.limits.elapsed - before)

    def layer(self, design: int, layer: int, share: float) -> Figures:
        """Key, bound and infeasibility of a layer on a design, as another solver finds them."""
        place = design, layer
        if place not in self._known:
            self._known[place] = self._solved(self.state(design, layer), share)
        return self._known[place]

    def _solved(self, problem: LayerProblem, share: float) -> Figures:
        for name in proof_solvers(problem, self.solver):
            if self.limits.expired:
                break
            result = layer_run(lambda: problem, name, self.limits.share(share, LONGEST)).run()
            if result.status is Status.INFEASIBLE:
                return Figures(infeasible=True)
            if result.status is Status.OPTIMAL and result.evaluation is not None:
                return Figures((result.evaluation.energy, result.evaluation.cycles), result.bound)
        return Figures()

    def _verdict(self, claim: DesignClaim, share: float) -> tuple[Verdict, str]:
        if claim.key is None and claim.bound is None and not claim.infeasible:
            return Verdict.NOTHING, "nothing is claimed"
        both = zip(claim.counts, claim.least_counts, strict=True)
        counting = [layer for layer, counts in enumerate(both) if any(counts)]
        parts: list[tuple[int, Fraction, int]] = []
        bounds: list[tuple[int, Fraction]] = []
        is_pruned = is_open = False
        for left, layer in zip(range(len(counting), 0, -1), counting, strict=True):
            figures = self.layer(claim.index, layer, share / left)
            is_pruned |= figures.infeasible
            if figures.best is not None:
                parts.append((claim.counts[layer], *figures.best))
                bounds.append((claim.least_counts[layer], figures.bound or Fraction(0)))
            is_open |= figures.best is None and not figures.infeasible
        if is_pruned:
            if claim.infeasible:
                return Verdict.CONFIRMED, "a layer has no mapping"
            if claim.key is not None:
                return Verdict.REFUTED, "a layer has no mapping at all"
            return Verdict.CONFIRMED, "a layer has no mapping, so any bound holds"
        if is_open:
            return Verdict.UNDECIDED, "not every layer was solved within the limits"
        if claim.infeasible:
            return Verdict.REFUTED, "every layer has a mapping"
        return self._compared(claim, self.objective.value(parts), self.objective.bound(bounds))

    def _compared(self, claim: DesignClaim, key: Fraction, bound: Fraction) -> tuple[Verdict, str]:
        """What a value that some mappings have, and a bound of all, say of a claim."""
        if claim.bound is not None and key < claim.bound:
            return Verdict.REFUTED, f"mappings of {_shown(key)} in all lie below the bound"
        if claim.key is not None and bound > claim.key:
            return Verdict.REFUTED, f"no mappings have less than {_shown(bound)} in all"
        if claim.counts == claim.least_counts and self.objective.adds_up(sum(claim.counts)):
            return Verdict.CONFIRMED, "its layers' optima agree"
        if claim.bound is not None and bound < claim.bound:
            return Verdict.UNDECIDED, f"the layers' optima bound it by {_shown(bound)} alone"
        if claim.key is not None and key > claim.key:
            return Verdict.UNDECIDED, f"the layers' optima that were found have {_shown(key)}, which is more"
        return Verdict.CONFIRMED, "its layers' optima agree"


def _shown(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.9g}"
