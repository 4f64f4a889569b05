"""Best-first chains as a method on tiled machines; its proof is one for the closed form, not for plans."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.heuristics.scheduling.tiled.kapla.methods import ChainMethod
from tilewright.solvers.scheduling.tiled.kapla.best_first import BestFirst


@dataclass(frozen=True)
class ProvenChains(ChainMethod):
    """The best chain of segments by the closed form, proven; its plan is offered as any other."""

    name = "chains"

    def solve(self, search: TiledSearch) -> Outcome:
        """Best-first on the bounds of segments."""
        form = self.form(search)
        self.begin(search, form)
        found = BestFirst(
            form,
            self.slicing,
            stop=lambda: search.done,
            found=lambda chain: self.offer_tree(search, form, chain.tree),
        ).solve()
        if found.chain is None:
            return Outcome(message="no chain of segments fits" if found.proven else "")
        value = form.value(found.chain.energy, found.chain.cycles)
        state = "proven" if found.proven else f"bound {found.bound:.4g}"
        return Outcome(message=f"best chain by the closed form {value:.4g}, {state}")
