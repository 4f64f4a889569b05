"""A search of a part of another search's space."""

from __future__ import annotations

from contextlib import AbstractContextManager
from fractions import Fraction

from tilewright.formulation.effort import Tally
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin
from tilewright.formulation.search import Judgement


class PartSearch(LayerSearch):
    """A search of a part: what it finds is offered to the whole at once, what it proves is its own.

    Parameters
    ----------
    whole : the other search, which also counts the effort
    problem : the part
    limits : of the part
    source : what the whole calls the mappings and the effort, as a heuristic's; by default they are those of
        the method that searches
    """

    def __init__(
        self, whole: LayerSearch, problem: LayerProblem, limits: Limits, source: str | None = None
    ) -> None:
        super().__init__(problem, limits, exact=whole.exact)
        self.count_with(whole)
        self._whole, self._source = whole, source

    @property
    def done(self) -> bool:
        """Whether it has ended, or a limit of the whole has struck, which may look at the whole's answers."""
        return super().done or self._whole.limits.ends(self._whole)

    def keep(
        self, judgement: Judgement[Mapping, Evaluation], source: str, origin: Origin = Origin.EXACT
    ) -> Fraction | None:
        """Keep an answer, and so does the whole, which may be a part itself.

        It is evaluated once where it costs the same in both.
        """
        key = super().keep(judgement, source, origin)
        if key is not None:
            answer, whole = judgement.answer, self._whole.problem
            whole_source = self._source or source
            whole_origin = origin if self._source is None else Origin.HEURISTIC
            if whole.counts_as(self.problem):
                evaluated = whole.judged(answer, judgement.evaluation)
                self._whole.keep(evaluated, whole_source, whole_origin)
            else:
                self._whole.offer(answer, whole_source, whole_origin)
        return key

    def at_work(self, method: str) -> AbstractContextManager[Tally]:
        """The method, or what the whole calls it, is at work."""
        return self._whole.at_work(self._source or method)
