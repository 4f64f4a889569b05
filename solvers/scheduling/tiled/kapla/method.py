"""Proven chains as methods on tiled machines; the proofs hold for the closed form, not for plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, ChosenChain
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.kapla.methods import ChainMethod
from tilewright.heuristics.scheduling.tiled.set.offers import TreeOffers
from tilewright.solvers.mapping.mip.child import ChildError
from tilewright.solvers.scheduling.tiled.kapla.best_first import BestFirst
from tilewright.solvers.scheduling.tiled.kapla.cover import Cover
from tilewright.solvers.scheduling.tiled.linear import SOLVERS, missing_solver

EXACT = 1e-8
"""Bound on the relative slack of bounds for float arithmetic."""


@dataclass(frozen=True)
class ProvenChains(ChainMethod):
    """The best chain of segments by the closed form, proven; its plan is offered as any other."""

    name = "chains"

    def choose(
        self, form: ClosedForm, seed: int, stop: Callable[[], bool], notify: Callable[[Chain], None]
    ) -> ChosenChain:
        """Best-first on the bounds of segments.

        Parameters
        ----------
        form, seed, stop, notify : as for `PipelineMethod.choose`
        """
        return BestFirst(form, self.slicing, stop, notify).solve()

    def told(self, offers: TreeOffers, chosen: ChosenChain) -> str:
        return reported(offers.form, chosen)


@dataclass(frozen=True)
class CoveredLayers(ChainMethod):
    """The best chain of segments over all orders of the layers, as an exact cover of these by segments."""

    solver: str = option("cpsat", "solver of the cover", choices=SOLVERS)

    name = "cover"

    def solve(self, search: TiledSearch) -> Outcome:
        """Linear programs on the bounds of segments, then one linear statement of what is left."""
        missing = missing_solver(self.solver)
        if missing:
            return Outcome(message=missing, error=True)
        form = self.form(search)
        offers = self.offers(search, form)
        self.begin(offers)
        cover = Cover(
            form,
            search.limits,
            self.slicing,
            self.solver,
            stop=offers.over,
            notify=lambda chain: offers.offer(chain.tree),
        )
        try:
            return Outcome(message=reported(form, cover.solve()))
        except ChildError as failure:
            return Outcome(message=f"solver {self.solver}: {failure}", error=True)


def reported(form: ClosedForm, chosen: ChosenChain) -> str:
    """What a search says of its chains."""
    if chosen.chain is None:
        return "no chain of segments fits" if chosen.proven else ""
    value = form.value(chosen.chain.energy, chosen.chain.cycles)
    state = f"bound {chosen.bound:.4g}"
    if chosen.proven:
        left = 1 - chosen.bound / value
        state = "proven" if left <= EXACT else f"proven to {left:.0e}"
    return f"best chain by the closed form {value:.4g}, {state}"
