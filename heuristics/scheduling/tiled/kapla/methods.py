"""KAPLA and Tangram as methods on tiled machines: the closed form selects chains, plans judge them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.kapla.aggregate import AggregateEstimator
from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, ChosenChain
from tilewright.formulation.scheduling.tiled.kapla.estimate import Estimates, Estimator
from tilewright.formulation.scheduling.tiled.kapla.segments import BOTH, SPATIAL, TEMPORAL, Kind, Orders
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules, in_small_buffers
from tilewright.foundation.options import option
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing, tangram_chain
from tilewright.heuristics.scheduling.tiled.set.methods import TreeMethod
from tilewright.heuristics.scheduling.tiled.set.offers import TreeOffers

PIPELINING: dict[str, tuple[Kind, ...]] = {"both": BOTH, "spatial": SPATIAL, "temporal": TEMPORAL}
"""Kinds of segments by the names that options have."""

ORDERS: dict[str, Orders] = {"auto": "auto", "own": "own", "sets": "sets", "all": "all"}

ESTIMATES: dict[str, Callable[[ClosedForm, int], Estimates]] = {
    "floors": Estimator,
    "aggregate": AggregateEstimator,
}
"""Estimates by the names that options have."""


@dataclass(frozen=True)
class PipelineMethod(TreeMethod):
    """What all methods on segments share."""

    bands: int = option(
        1,
        "parts of a sample that layers pass on: powers of two up to that, 1 for whole samples",
        low=1,
        high=256,
    )
    rooms: str = option(
        "set",
        "capacities for results and streamed weights: SET's, or less for small buffers",
        choices=("set", "small"),
    )

    def rules_on(self, machine: TiledMachine) -> Rules:
        """The rules of trees, with capacities that fit the machine's buffers."""
        rules = super().rules_on(machine)
        if self.rooms == "set":
            return rules
        return in_small_buffers(rules, machine.in_elements().engine.buffer_bytes)

    def choose(
        self, form: ClosedForm, seed: int, stop: Callable[[], bool], notify: Callable[[Chain], None]
    ) -> ChosenChain:
        """The chain by the closed form alone.

        Parameters
        ----------
        form : of `form_of`
        seed : of all chance
        stop : whether the time is up
        notify : notified of every better chain
        """
        raise NotImplementedError

    def begin(self, offers: TreeOffers) -> None:
        """Offer all layers in turn, so that a plan is there whenever time is up."""
        offers.first()

    def solve(self, search: TiledSearch) -> Outcome:
        """Offer the plans of ever better chains."""
        form = self.form(search)
        offers = self.offers(search, form)
        self.begin(offers)
        seed = search.limits.seed
        chosen = self.choose(form, seed, offers.over, lambda chain: offers.offer(chain.tree))
        return Outcome(message=self.told(offers, chosen))

    def told(self, offers: TreeOffers, chosen: ChosenChain) -> str:
        """What a user should know of the search: how far it came, and the best plan beside its tree."""
        return "; ".join(text for text in (chosen.note, self.told_of(offers)) if text)


@dataclass(frozen=True)
class ChainMethod(PipelineMethod):
    """What all methods on chains of segments share."""

    pipelining: str = option("both", "segments side by side, in turn, or both", choices=tuple(PIPELINING))
    orders: str = option(
        "auto", "segments of the network's order, between down-sets, in all orders", choices=tuple(ORDERS)
    )
    spatial: int = option(8, "layers of a segment side by side", low=1, high=1000)
    temporal: int = option(16, "layers of a segment in turn", low=1, high=1000)
    splits: bool = option(True, "whether the whole chain may run on parts of the batch in turn")

    @property
    def slicing(self) -> Slicing:
        """The chains that are searched."""
        kinds = PIPELINING[self.pipelining]
        return Slicing(kinds, self.spatial, self.temporal, ORDERS[self.orders], self.splits, self.bands)

    def begin(self, offers: TreeOffers) -> None:
        """Offer all layers in turn, then a chain of the network's own order: neither takes long."""
        offers.first()
        if self.orders != "own":
            KaplaSolver(
                offers.form,
                replace(self.slicing, orders="own", splits=False),
                1,
                stop=offers.over,
                notify=lambda chain: offers.offer(chain.tree),
            ).solve()


@dataclass(frozen=True)
class Kapla(ChainMethod):
    """KAPLA between layers: pruning, least costs, the best few chains, then partitions for these."""

    k: int = option(4, "chains kept at every state (k_S)", low=1, high=4096)

    estimate: str = option(
        "floors", "lower bounds of segments: close, or as loose as in the paper", choices=tuple(ESTIMATES)
    )

    name = "kapla"

    def choose(
        self, form: ClosedForm, seed: int, stop: Callable[[], bool], notify: Callable[[Chain], None]
    ) -> ChosenChain:
        """Section IV-B, then the partitions of every layer in the chains that are left.

        Parameters
        ----------
        form, seed, stop, notify : as for `PipelineMethod.choose`
        """
        solver = KaplaSolver(form, self.slicing, self.k, ESTIMATES[self.estimate], stop, notify)
        chain, count = solver.solve(), solver.pruning
        return ChosenChain(chain, schemes=count.schemes, valid=count.valid, kept=count.kept)


@dataclass(frozen=True)
class Tangram(PipelineMethod):
    """Tangram: segments of layers side by side, chained by dynamic programming over the network's order."""

    spatial: int = option(8, "layers of a segment", low=1, high=1000)

    name = "tangram"

    def choose(
        self, form: ClosedForm, seed: int, stop: Callable[[], bool], notify: Callable[[Chain], None]
    ) -> ChosenChain:
        """Every segment is evaluated; one partial chain continues per layer.

        Parameters
        ----------
        form, seed, stop, notify : as for `PipelineMethod.choose`
        """
        return ChosenChain(
            tangram_chain(form, longest=self.spatial, stripes=self.bands, stop=stop, notify=notify)
        )
