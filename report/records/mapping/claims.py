"""What a document claims of a layer, as a second opinion takes it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.report.records.mapping.document import LayerRecord, SettingsRecord, SolutionRecord, ThenRecord
from tilewright.solvers.mapping.answers.answer_set_opinion import SetsClaim
from tilewright.solvers.mapping.answers.second_opinion import NO_SETS, Claim, SecondClaim


def claim_of(layer: LayerRecord, settings: SettingsRecord | None = None) -> Claim:
    """The claim of a layer's record; raises ``InputError`` for a mapping that is none.

    Parameters
    ----------
    settings : that say how long lists were to be; ``None`` where lists do not count
    """
    return Claim(
        status=Status(layer.status),
        key=layer.value_key,
        bound=layer.bound_key,
        mapping=None if layer.mapping is None else Mapping.from_data(layer.mapping.nodes),
        solver=layer.solver,
        then=None if layer.then is None else _second(layer.then),
        sets=_sets(layer, settings),
    )


def _sets(layer: LayerRecord, settings: SettingsRecord | None) -> SetsClaim:
    """The layer's lists that are said to be complete."""
    if settings is None:
        return NO_SETS
    front, best, optima = layer.front, layer.best, layer.optima
    return SetsClaim(
        front=_pairs(front.points) if front is not None and front.complete else None,
        best=(_pairs(best.mappings), settings.best or 1) if best is not None and best.complete else None,
        optima=(optima.count, settings.all_optimal or 1) if optima is not None and optima.complete else None,
        conflict=layer.clash,
    )


def _pairs(solutions: Sequence[SolutionRecord]) -> list[tuple[Fraction, int]]:
    return [(Fraction(solution.energy_pj_exact), solution.cycles) for solution in solutions]


def _second(then: ThenRecord) -> SecondClaim:
    return SecondClaim(parse_objective(then.objective), then.value_key, then.bound_key)
