"""Whether the claims of a document about layers hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from tilewright.api.checked import Check
from tilewright.formulation.limits import Limits
from tilewright.report.checks.mapping.document import LayerCheck, check_document, totals_faults
from tilewright.report.records.mapping.claims import claim_of
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.text.mapping.checks import check_views
from tilewright.report.text.proofs import proof_data
from tilewright.solvers.mapping.answers.second_opinion import prove
from tilewright.solvers.mapping.networks.layer_shares import share_of_layer
from tilewright.solvers.second_opinion import Proof, Verdict

Reported = Callable[[int, int, str, Proof], None]
"""Called for a second opinion: its place, how many there are, the layer, and what was said."""


@dataclass(frozen=True, repr=False)
class MappingCheck(Check):
    """What a check of mappings found; proofs are one per layer.

    Parameters
    ----------
    layers : per layer, what is wrong with it
    totals : what is wrong with the head and the sums
    """

    record: ResultDocument
    layers: tuple[LayerCheck, ...]
    totals: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer."""
        rows: list[dict[str, Any]] = self.to_dict()["layers"]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        layers: list[dict[str, Any]] = []
        for index, check in enumerate(self.layers):
            layer = check.layer
            entry: dict[str, Any] = {
                "name": layer.name,
                "status": layer.status,
                "holds": not check.faults,
                "space": None if layer.space is None else layer.space.model_dump(),
                "faults": list(check.faults),
            }
            if self.proofs:
                entry["proof"] = proof_data(self.proofs[index])
            layers.append(entry)
        reported = self._reported({"arch": self.record.arch.name}, complete=self.record.complete)
        return {**reported, "layers": layers, "totals_faults": list(self.totals)}

    def views(self) -> Sequence[RenderableType]:
        """One line per layer, every fault, and a summary."""
        return check_views(self.record, self.layers, self.totals, self.proofs)

    def __repr__(self) -> str:
        return self._named(f"{len(self.layers)} layers")


def check_mappings(
    record: ResultDocument, where: str, limits: Limits | None, reported: Reported | None
) -> MappingCheck:
    """Check every layer of a document.

    Parameters
    ----------
    limits : of all second opinions together; ``None`` to ask for none
    reported : called with every second opinion

    Raises
    ------
    InputError : for a machine or an objective that is none
    """
    checks = tuple(check_document(record, where))
    totals = tuple(totals_faults(record, where))
    proofs: list[Proof] = []
    for index, check in enumerate(checks if limits is not None else ()):
        assert limits is not None
        own_limits = share_of_layer(limits, len(checks) - index)
        if check.problem is None or own_limits.expired:
            text = "the problem cannot be stated" if check.problem is None else "no time left"
            proofs.append(Proof(Verdict.UNDECIDED, "-", text))
            continue
        proofs.append(prove(claim_of(check.layer, record.settings), check.problem, own_limits))
        if reported is not None:
            reported(index + 1, len(checks), check.layer.name, proofs[-1])
    own = (f"{check.layer.name}: {fault}" for check in checks for fault in check.faults)
    return MappingCheck((*own, *totals), tuple(proofs), record, checks, totals)
