"""Whether the claims of a fused document hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tilewright.api.checked import Check
from tilewright.api.mapping.checking import Reported
from tilewright.formulation.limits import Limits
from tilewright.report.checks.mapping.fused import fused_faults
from tilewright.report.records.mapping.fused_claims import fused_claim
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.text.mapping.fused_network import better_views
from tilewright.report.text.proofs import STYLES, proof_data
from tilewright.solvers.mapping.fused.second_opinion import NETWORK, FusedProofs, prove_fused
from tilewright.solvers.second_opinion import Proof, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, repr=False)
class FusedCheck(Check):
    """What a check of a fused document found.

    Parameters
    ----------
    opinions : on layers, groups and the network, each with what it is about, and mappings that refute claims
    """

    record: FusedDocument
    opinions: FusedProofs = field(default_factory=FusedProofs)

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        reported = self._reported({"arch": self.record.arch.name}, complete=self.record.complete)
        data = {**reported, "faults": list(self.faults)}
        if self.opinions.proofs:
            data["proofs"] = [{"of": about, **proof_data(proof)} for about, proof in self.opinions.proofs]
            data["better"] = [
                {"layers": better.group.names, "value": float(better.value), "tree": better.tree.to_data()}
                for better in self.opinions.better
            ]
        return data

    def views(self) -> Sequence[RenderableType]:
        """Every fault, every opinion that does not confirm, and the trees that refute."""
        views: list[RenderableType] = [Text(fault, style="red") for fault in self.faults]
        number = len(self.record.groups)
        if not self.faults:
            text = f"holds: {number} group{'s' * (number > 1)}, every tree evaluated anew"
            views.append(Text(text, style="green"))
        proofs = self.opinions.proofs
        for about, proof in proofs:
            verdict = proof.verdict.value
            if proof.verdict is not Verdict.CONFIRMED:
                text = f"{about}: {verdict} by {proof.solver}: {proof.text}"
                views.append(Text(text, style=STYLES.get(verdict, "yellow")))
        for better in self.opinions.better:
            views += ["", *better_views(self.record, better)]
        if proofs:
            verdicts = Counter(proof.verdict.value for _, proof in proofs)
            views.append(Text(", ".join(f"{count} claims {verdict}" for verdict, count in verdicts.items())))
        return views


def check_fused(
    record: FusedDocument, where: str, limits: Limits | None, reported: Reported | None
) -> FusedCheck:
    """Whether the claims of a fused document hold.

    Parameters
    ----------
    record, where : the document, and what errors call it
    limits : of all second opinions together; ``None`` to ask for none
    reported : called with every second opinion
    """
    faults = tuple(fused_faults(record, where))
    if limits is None or faults:
        return FusedCheck(faults, (), record)
    opinions = _opinions(record, where, limits, reported)
    return FusedCheck(faults, tuple(proof for _, proof in opinions.proofs), record, opinions)


def _opinions(record: FusedDocument, where: str, limits: Limits, reported: Reported | None) -> FusedProofs:
    if record.graph is None:
        unknown = Proof(Verdict.UNDECIDED, "-", "the document does not say which layers read each other")
        return FusedProofs([(NETWORK, unknown)])
    claim = fused_claim(record, record.graph, where)
    number = len(claim.groups) + 1
    told: list[str] = []

    def tell(about: str, proof: Proof) -> None:
        told.append(about)
        if reported is not None:
            reported(len(told), max(number, len(told)), about, proof)

    return prove_fused(claim, limits, tell)
