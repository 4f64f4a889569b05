"""What a document claims of a layer, as a second opinion takes it."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.report.records.mapping.document import LayerRecord, ThenRecord
from tilewright.solvers.mapping.second_opinion import Claim, SecondClaim


def claim_of(layer: LayerRecord) -> Claim:
    """The claim of a layer's record; raises ``InputError`` for a mapping that is none."""
    return Claim(
        status=Status(layer.status),
        key=layer.value_key,
        bound=layer.bound_key,
        mapping=None if layer.mapping is None else Mapping.from_data(layer.mapping.nodes),
        solver=layer.solver,
        then=None if layer.then is None else _second(layer.then),
    )


def _second(then: ThenRecord) -> SecondClaim:
    key, bound = (None if text is None else Fraction(text) for text in (then.value_exact, then.bound_exact))
    return SecondClaim(parse_objective(then.objective), key, bound)
