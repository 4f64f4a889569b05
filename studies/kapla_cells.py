"""Cells of KAPLA's tables: the best chain that one way of choosing finds, by the closed form."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random

from studies.answers import AnswerStore
from tilewright.formulation.scheduling.tiled.kapla.aggregate import AggregateEstimator
from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, Priced, priced_chain
from tilewright.formulation.scheduling.tiled.kapla.estimate import Estimates, Estimator
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme, SegmentSpace
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules, in_small_buffers
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.prioritization import top_chains
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing, tangram_chain
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments, best_chain
from tilewright.solvers.scheduling.tiled.kapla.best_first import BestFirst
from tilewright.workloads.catalog import resolve_model

POWERS = {"energy": (1.0, 0.0), "makespan": (0.0, 1.0), "edp": (1.0, 1.0)}
"""Of energy and of cycles in the objectives."""

DRAWN = 0.1
"""Part of the segments that the random search prices, the least for which the paper's always found chains."""


@dataclass(frozen=True, slots=True)
class ChainCell:
    """What is to be computed.

    Parameters
    ----------
    network : of the catalog, ``:training`` behind it for its training graph
    way : one of `WAYS`
    number : the seed of ``random``, the rows that ``kapla`` keeps
    spatial, temporal : layers of a segment
    seconds : of the processor
    bands : most row stripes of a sample that layers pass on
    rooms : ``set``, or ``small`` for capacities of a part of a small buffer (`in_small_buffers`)
    """

    network: str
    system: str
    batch: int
    objective: str
    way: str
    number: int
    spatial: int
    temporal: int
    seconds: float
    bands: int = 1
    rooms: str = "set"


@dataclass(frozen=True, slots=True)
class ChainFound:
    """What a cell came to.

    Parameters
    ----------
    status : ``proven``, ``found`` or ``none``
    value : of the objective, in pJ and cycles; 0 without a chain
    bound : no chain of these segments has less; 0 where nothing is known
    seconds : of the processor
    segments : of the chain; ``longest``: layers of the longest
    schemes, valid, kept : segments there are, that may fit, that none of the same layers beats
    """

    status: str
    value: float = 0.0
    bound: float = 0.0
    seconds: float = 0.0
    segments: int = 0
    longest: int = 0
    schemes: int = 0
    valid: int = 0
    kept: int = 0
    message: str = ""


def chain_store(path: Path) -> AnswerStore[ChainCell, ChainFound]:
    """The file of finished cells."""
    return AnswerStore(path, ChainFound, 0x546C4B63, "cells of KAPLA's chains")  # "TlKc"


@dataclass
class _Count:
    schemes: int = 0
    valid: int = 0
    kept: int = 0


@dataclass
class _Search:
    """One cell being computed."""

    cell: ChainCell
    form: ClosedForm
    started: float
    best: Chain | None = None
    bound: float = 0.0
    proven: bool = False
    counted: _Count = field(default_factory=_Count)

    @property
    def slicing(self) -> Slicing:
        return Slicing(
            longest_spatial=self.cell.spatial,
            longest_temporal=self.cell.temporal,
            orders="own",
            splits=False,
            stripes=self.cell.bands,
        )

    def stop(self) -> bool:
        """Whether the time is up."""
        return time.process_time() - self.started > self.cell.seconds

    def found(self, chain: Chain) -> None:
        """Keep a better chain."""
        value = self.form.value
        if self.best is None or value(chain.energy, chain.cycles) < value(self.best.energy, self.best.cycles):
            self.best = chain

    def space(self) -> SegmentSpace:
        """The segments that there are."""
        return next(space for _, space in self.slicing.spaces(self.form))

    def run_proven(self) -> None:
        """Best-first on bounds."""
        proof = BestFirst(self.form, self.slicing, self.stop, self.found).solve()
        self.proven, self.bound = proof.proven, proof.bound
        self.counted = _Count(proof.schemes, proof.valid, proof.evaluated)

    def run_priced(self) -> None:
        """Every segment priced, then the best path over labels that no other one beats."""
        space = self.space()
        segments, schemes = Segments(), {}
        for start in space.starts[:-1]:
            for scheme in space.schemes(start):
                if self.stop():
                    return
                self.counted.schemes += 1
                cost = self.form.segment(scheme.tree, self.form.batch)
                if not isinstance(cost, Unfit):
                    self.counted.valid += 1
                    tree = scheme.tree
                    schemes[tree] = scheme
                    segments.add(Segment(scheme.start, scheme.end, cost.energy, cost.cycles, tree))
        chain, _ = best_chain(segments, list(space.starts), self.form.value)
        self.proven = True
        if chain:
            self._offer([schemes[segment.tree] for segment in chain])
            assert self.best is not None
            self.bound = self.form.value(self.best.energy, self.best.cycles)

    def run_random(self) -> None:
        """A part of the segments priced, at least one for every row of layers."""
        space, random = self.space(), Random(self.cell.number)
        candidates: dict[int, list[Priced]] = {}
        for start in space.starts[:-1]:
            rows: dict[tuple[int, ...], list[SegmentScheme]] = {}
            for scheme in space.schemes(start):
                rows.setdefault(scheme.layers, []).append(scheme)
            for row in rows.values():
                random.shuffle(row)
                drawn = [candidate for candidate in row if random.random() < DRAWN]
                for scheme in drawn if drawn or len(row[0].layers) > 1 else row:
                    if self.stop():
                        return
                    self.counted.schemes += 1
                    cost = self.form.segment(scheme.tree, self.form.batch)
                    if not isinstance(cost, Unfit):
                        self.counted.valid += 1
                        candidates.setdefault(start, []).append(Priced(scheme, cost.energy, cost.cycles))
                        if not drawn:
                            break
        for segments in top_chains(space.starts, candidates, self.form.value, 1):
            self._offer(list(segments))

    def run_tangram(self) -> None:
        """Tangram's dynamic programming."""
        tangram_chain(
            self.form, longest=self.cell.spatial, stripes=self.cell.bands, stop=self.stop, found=self.found
        )

    def run_kapla(self) -> None:
        """KAPLA's pruning and best few chains, by the close estimate."""
        self._kapla(Estimator)

    def run_kapla_as_printed(self) -> None:
        """The same by the loose estimate that the paper describes."""
        self._kapla(AggregateEstimator)

    def _kapla(self, estimator: Callable[[ClosedForm, int], Estimates]) -> None:
        solver = KaplaSolver(
            self.form, self.slicing, self.cell.number, estimator, stop=self.stop, found=self.found
        )
        solver.solve()
        self.counted = _Count(solver.pruning.schemes, solver.pruning.valid, solver.pruning.kept)

    def _offer(self, segments: list[SegmentScheme]) -> None:
        chain = priced_chain(self.form, segments, 1)
        if isinstance(chain, Chain):
            self.found(chain)


WAYS: dict[str, Callable[[_Search], None]] = {
    "proven": _Search.run_proven,
    "priced": _Search.run_priced,
    "random": _Search.run_random,
    "tangram": _Search.run_tangram,
    "kapla": _Search.run_kapla,
    "kapla-printed": _Search.run_kapla_as_printed,
}
"""How chains are chosen, by the names that cells give."""


@cache
def network_of(name: str) -> SetNetwork:
    """The layers of a network of the catalog."""
    return set_network(units_of(resolve_model(name, 1), fuse=True), name)


def compute(cell: ChainCell) -> ChainFound:
    """Search, with a closed form that knows nothing yet."""
    energy, delay = POWERS[cell.objective]
    network, machine = network_of(cell.network), load_tiled_machine(cell.system)
    rules = Rules()
    if cell.rooms == "small":
        rules = in_small_buffers(rules, machine.in_elements().engine.buffer_bytes)
    form = engine_form(network, machine, cell.batch, rules, energy=energy, delay=delay)
    search = _Search(cell, form, time.process_time())
    WAYS[cell.way](search)
    seconds = time.process_time() - search.started
    count, best = search.counted, search.best
    chain_found = ChainFound(
        "none", bound=search.bound, seconds=seconds, schemes=count.schemes, valid=count.valid, kept=count.kept
    )
    if best is None:
        late = "the time was up" if search.stop() else "no chain of these segments fits"
        return replace(chain_found, message=late)
    return replace(
        chain_found,
        status="proven" if search.proven else "found",
        value=form.value(best.energy, best.cycles),
        segments=len(best.segments),
        longest=max(len(segment.layers) for segment in best.segments),
    )
