"""The approaches that KAPLA's evaluation compares itself with (section V), over segments and partitions.

Each prices segments of the network's own order.  B and S price all of them with the best partition of every
layer, R a part of them with the best of a part of the partitions, M all of them with partitions that
annealing on boosted trees meets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, ChosenChain
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.kapla.methods import ORDERS, PIPELINING, ChainMethod
from tilewright.heuristics.scheduling.tiled.kapla.partition_choices import DrawnPartitions, LearnedPartitions
from tilewright.heuristics.scheduling.tiled.kapla.priced_chains import PricedChains
from tilewright.heuristics.scheduling.tiled.set.offers import FIRST, TreeOffers

LOADING = 5.0
"""Seconds below which a plan of atoms comes before the library that learns is loaded."""


@dataclass(frozen=True)
class Directives(ChainMethod):
    """S: every segment side by side or in turn, as the directives allow."""

    orders: str = option(
        "own", "segments of the network's order, between down-sets, in all orders", choices=tuple(ORDERS)
    )
    splits: bool = option(False, "whether the whole chain may run on parts of the batch in turn")

    name = "directives"

    def choose(
        self, form: ClosedForm, seed: int, stop: Callable[[], bool], notify: Callable[[Chain], None]
    ) -> ChosenChain:
        """Price segments until the time is up.

        Parameters
        ----------
        form, seed, stop, notify : as for `PipelineMethod.choose`
        """
        return PricedChains(form, self.slicing, self.part, Random(seed), stop, notify).solve()

    @property
    def part(self) -> float:
        """Of the schemes that are priced."""
        return 1.0


@dataclass(frozen=True)
class NnDataflow(Directives):
    """B: every segment of layers side by side, as in nn-dataflow."""

    pipelining: str = option("spatial", "segments side by side, in turn, or both", choices=tuple(PIPELINING))
    splits: bool = option(True, "whether the whole chain may run on parts of the batch in turn")

    name = "nn-dataflow"


@dataclass(frozen=True)
class RandomChains(Directives):
    """R: candidates are looked at with a probability, at every level but the cuts into segments."""

    probability: float = option(0.1, "with which a scheme or a partition is looked at", low=0.001, high=1)

    name = "random"
    stochastic = True

    @property
    def part(self) -> float:
        return self.probability

    def form_of(self, problem: TiledProblem, seed: int) -> ClosedForm:
        """The closed form with the best of a part of every layer's partitions."""
        form = super().form_of(problem, seed)
        form.engine = DrawnPartitions(form, seed, self.probability)
        return form


@dataclass(frozen=True)
class LearnedChains(Directives):
    """M: every segment, with partitions by annealing guided by boosted trees, as in AutoTVM."""

    iterations: int = option(8, "batches of a layer; the paper takes 1024", low=1, high=10**6)
    batch: int = option(16, "partitions measured at once; the paper takes 128", low=1, high=10**6)

    name = "autotvm"
    stochastic = True

    def form_of(self, problem: TiledProblem, seed: int) -> ClosedForm:
        """The closed form with learned partitions."""
        form = super().form_of(problem, seed)
        form.engine = LearnedPartitions(form, seed, self.iterations, self.batch)
        return form

    def begin(self, offers: TreeOffers) -> None:
        """Offer all layers in turn; those that a part of the time leaves over learn from one batch.

        What learns takes seconds to load: where few are left a plan of atoms comes first.
        """
        search, engine = offers.search, offers.form.engine
        remaining, limits = search.limits.remaining, search.limits.share(FIRST)
        if remaining is not None and remaining < LOADING:
            offers.atoms()
        if isinstance(engine, LearnedPartitions):
            engine.stop = lambda: search.done or limits.expired
        super().begin(offers)

    def choose(
        self, form: ClosedForm, seed: int, stop: Callable[[], bool], notify: Callable[[Chain], None]
    ) -> ChosenChain:
        """Price segments until the time is up; learned partitions prove nothing.

        Parameters
        ----------
        form, seed, stop, notify : as for `PipelineMethod.choose`
        """
        if isinstance(form.engine, LearnedPartitions):
            form.engine.stop = stop
        return replace(super().choose(form, seed, stop, notify), bound=0.0, proven=False)
