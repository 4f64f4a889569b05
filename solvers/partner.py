"""One method's view of a search that it shares with others."""

from __future__ import annotations

import threading
from fractions import Fraction

from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.search import Limits, Search


class Partner(Search):
    """One solver's view of a shared search: the same incumbent and bound, limits of its own.

    Parameters
    ----------
    over : set once another solver has accounted for every mapping
    """

    def __init__(self, main: Search, limits: Limits, over: threading.Event) -> None:
        self._main = main
        self._over = over
        self.problem = main.problem
        self.limits = limits

    def offer(self, mapping: Mapping, source: str, heuristic: bool = False) -> Fraction | None:
        return self._main.offer(mapping, source, heuristic)

    def raise_bound(self, bound: Fraction | int, source: str) -> None:
        self._main.raise_bound(bound, source)

    @property
    def value(self) -> Fraction | None:  # type: ignore[override]
        return self._main.value

    @property
    def bound(self) -> Fraction | None:  # type: ignore[override]
        return self._main.bound

    @property
    def mapping(self) -> Mapping | None:  # type: ignore[override]
        return self._main.mapping

    @property
    def evaluation(self) -> Evaluation | None:  # type: ignore[override]
        return self._main.evaluation

    @property
    def done(self) -> bool:
        return self._over.is_set() or self._main.done or self.limits.expired
