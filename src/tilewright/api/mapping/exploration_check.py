"""Whether the claims of a document of an exploration hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.checked import Check
from tilewright.api.mapping.checking import MappingCheck, Reported, check_mappings
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.demands.constraints import applicable
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.hardware.mapping.design_space import DesignSpace
from tilewright.report.checks.mapping.explore import explore_faults, stated_space
from tilewright.report.records.mapping.explore import DesignRecord, ExploreDocument, LayerBest
from tilewright.report.text.mapping.explore import fields_text
from tilewright.report.text.proofs import STYLES, proof_data
from tilewright.solvers.mapping.explore.second_opinion import DesignClaim, DesignProofs
from tilewright.solvers.second_opinion import Proof, Verdict


@dataclass(frozen=True, repr=False)
class ExploreCheck(Check):
    """What a check of an exploration found, in the best design's layers too.

    Parameters
    ----------
    own : what contradicts itself
    best : the check of the best design's mappings; ``None`` where there is no best design
    designs : second opinions on designs and on layers' own best ones, each with what it is about
    """

    record: ExploreDocument
    own: tuple[str, ...]
    best: MappingCheck | None
    designs: tuple[tuple[str, Proof], ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer of the best design."""
        return [] if self.best is None else self.best.rows()

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        reported = self._reported({"arch": self.record.machine}, complete=self.record.complete)
        best = None if self.best is None else self.best.to_dict()
        data = {**reported, "faults": list(self.own), "best": best}
        if self.designs:
            data["proofs"] = [{"of": about, **proof_data(proof)} for about, proof in self.designs]
        return data

    def views(self) -> Sequence[RenderableType]:
        """The best design's layers, every fault, and what was not asked."""
        views: list[RenderableType] = []
        if self.best is not None and self.record.best is not None:
            views += [Text(f"best design: {fields_text(self.record.best.fields)}"), *self.best.views()]
        views += [Text(f"✗ {fault}") for fault in self.own]
        agree = "do not agree with each other" if self.own else "agree with each other"
        reported = "their values and bounds are proofs that --prove repeats"
        if self.designs:
            verdicts = Counter(proof.verdict.value for _, proof in self.designs)
            reported = ", ".join(f"{count} claims {verdict}" for verdict, count in verdicts.items())
        views += [
            Text(f"{about}: {proof.verdict.value}: {proof.text}", STYLES.get(proof.verdict.value, "yellow"))
            for about, proof in self.designs
            if proof.verdict in (Verdict.REFUTED, Verdict.UNDECIDED)
        ]
        views.append(Text(f"{len(self.record.designs)} designs {agree}; {reported}"))
        return views

    def __repr__(self) -> str:
        return self._named(f"{len(self.record.designs)} designs")


def check_exploration(
    record: ExploreDocument, where: str, limits: Limits | None, reported: Reported | None
) -> ExploreCheck:
    """Check a document of an exploration, the best design's mappings included.

    Parameters
    ----------
    limits : of all second opinions together; ``None`` to ask for none
    reported : called with every second opinion

    Raises
    ------
    InputError : for a machine or an objective that is none
    """
    own = tuple(explore_faults(record, where))
    best = None if record.best is None else check_mappings(record.best.result, where, limits, reported)
    designs = () if limits is None or own else design_proofs(record, where, limits)
    proofs = tuple(proof for _, proof in designs)
    if best is None:
        return ExploreCheck(own, proofs, record, own, None, designs)
    return ExploreCheck((*own, *best.faults), (*best.proofs, *proofs), record, own, best, designs)


def design_proofs(record: ExploreDocument, where: str, limits: Limits) -> tuple[tuple[str, Proof], ...]:
    """Second opinions on every design but a best one of proven layers, and on the layers' own best designs.

    Parameters
    ----------
    limits : of all of them together
    """
    best = record.best
    known = best is not None and all(layer.status == "optimal" for layer in best.result.layers)
    claims = [row for row in record.designs if best is None or row.index != best.index or not known]
    if best is None:
        reported = Proof(
            Verdict.UNDECIDED, "-", "without a best design the document does not contain the layers"
        )
        return tuple((_about(row), reported) for row in claims if row.status not in ("refused", "open"))
    space, goal, layers = stated_space(record, where), record.goal, best.result.layers

    def state(design: int, layer: int) -> LayerProblem:
        engine, stated = space.designs[design].engine, layers[layer]
        assert engine is not None
        operator = stated.operator.build(where)
        demands = applicable(stated.constraints, operator, engine)
        return layer_problem(operator, engine, goal.layer, record.cost_model, demands, stated.factors)

    prover = DesignProofs(state, goal, record.settings.solver, limits)
    counts, least = [layer.count for layer in layers], [layer.least_count for layer in layers]
    proofs: list[tuple[str, Proof]] = []
    left = len(claims) + len(record.layer_bests)
    for design in claims:
        if design.status != "refused":
            key, bound = (None if text is None else Fraction(text) for text in _exact(design))
            claim = DesignClaim(design.index, counts, least, key, bound, design.status == "infeasible")
            proofs.append((_about(design), prover.prove(claim, 1 / left)))
        left -= 1
    for row in record.layer_bests:
        alone = [int(layer.name == row.layer) for layer in layers]
        proofs.append((f"best design for {row.layer}", _layer_proof(row, alone, space, prover, 1 / left)))
        left -= 1
    return tuple(proofs)


def _layer_proof(
    layer: LayerBest, alone: list[int], space: DesignSpace, prover: DesignProofs, share: float
) -> Proof:
    """Whether a layer has that value on that design, and no less than the bound on any."""
    usable = [design.index for design in space.designs if design.engine is not None]
    key, bound = Fraction(layer.value_exact), Fraction(layer.bound_exact)
    seconds, confirmed = 0.0, Proof(Verdict.CONFIRMED, "layers solved anew", "no design has less")
    for left, index in zip(range(len(usable), 0, -1), usable, strict=True):
        claim = DesignClaim(index, alone, alone, key if index == layer.index else None, bound)
        proof = prover.prove(claim, share / left)
        seconds += proof.seconds
        if proof.verdict is not Verdict.CONFIRMED:
            return Proof(proof.verdict, proof.solver, f"designs[{index}]: {proof.text}", seconds)
    return replace(confirmed, seconds=seconds)


def _about(design: DesignRecord) -> str:
    return f"designs[{design.index}] ({design.status})"


def _exact(design: DesignRecord) -> tuple[str | None, str | None]:
    return design.value_exact, design.bound_exact
