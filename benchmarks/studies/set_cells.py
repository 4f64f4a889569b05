"""Cells of the studies of resource allocation trees: one search by the closed form on one network, kept.

Networks of the released program have their names there, others are models of the catalog.  All searches of a
cell begin with SET's first tree (all layers one after the other), which is made before the clock starts.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from tilewright import __version__
from tilewright.benchmarks.studies.answers import AnswerStore
from tilewright.formulation.scheduling.tiled.kapla.chain import Chain
from tilewright.formulation.scheduling.tiled.kapla.segments import SPATIAL, TEMPORAL, Kind
from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm, engine_form, program_form
from tilewright.formulation.scheduling.tiled.set.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.program_networks import PROGRAM_NETWORKS, program_network
from tilewright.formulation.scheduling.tiled.set.rules import PUBLISHED, Rules
from tilewright.formulation.scheduling.tiled.set.tree import Node
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing, tangram_chain
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling, anneal, anneal_for, first_tree
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.set.exact import best_tree
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.errors import one_line

APPLICATION: Final = 0x546C5372  # "TlSr", SQLite's application_id


@dataclass(frozen=True, slots=True)
class TreeCell:
    """What is to be computed.

    Parameters
    ----------
    network : of the released program, or of the catalog
    part : layers of it by number; empty for all
    figures : costs of shares: ``program`` or ``engine``; ``rules``: ``paper`` or ``program``
    energy_power, delay_power : of the objective
    method : one of `METHODS`
    seconds : CPU seconds of the search
    """

    network: str
    part: tuple[int, ...]
    system: str
    figures: str
    rules: str
    batch: int
    energy_power: int
    delay_power: int
    method: str
    seed: int
    seconds: float

    @property
    def key(self) -> str:
        """Content hash of the cell and this program's version."""
        return hashlib.sha256(json.dumps([__version__, asdict(self)]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TreeFound:
    """What a cell came to.

    Parameters
    ----------
    status : ``found``, ``proven`` (nothing better in the method's space), ``out of time``, ``nothing`` or
        ``error``
    value : of the objective; infinite without a tree
    energy, cycles, dram, hops : of the tree, in pJ, cycles, bytes, and bytes times links
    bound : that no tree undercuts, of a cell that asks for it
    seconds : until the best tree, or the end of a proof
    """

    status: str
    value: float = float("inf")
    energy: float = 0.0
    cycles: int = 0
    dram: int = 0
    hops: int = 0
    bound: float = 0.0
    seconds: float = 0.0
    message: str = ""


class TreeStore(AnswerStore[TreeCell, TreeFound]):
    """The SQLite file of finished cells.

    Raises
    ------
    InputError : for a file of something else, or one that is damaged
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, TreeFound, APPLICATION, "cells of resource allocation trees")


def network_of(cell: TreeCell) -> SetNetwork:
    """The cell's network, or the part of it."""
    if cell.network in PROGRAM_NETWORKS:
        found = program_network(cell.network)
    else:
        model = resolve_model(cell.network, 1)
        found = set_network(units_of(model, fuse=True), model.name)
    return found.part(cell.part, f"part of {cell.network}") if cell.part else found


def form_of(cell: TreeCell) -> ClosedForm:
    """A closed form that knows nothing yet."""
    make = program_form if cell.figures == "program" else engine_form
    rules = PUBLISHED if cell.rules == "program" else Rules()
    machine = load_tiled_machine(cell.system)
    powers = {"energy": cell.energy_power, "delay": cell.delay_power}
    return make(network_of(cell), machine, cell.batch, rules, **powers)


class Best:
    """The best tree of a search, and when it came.

    Parameters
    ----------
    seconds : CPU seconds that the search may take
    """

    def __init__(self, form: ClosedForm, seconds: float) -> None:
        self.form, self.limit = form, seconds
        self.tree: Node | None = None
        self.value, self.when = float("inf"), 0.0
        begun = first_tree(form)
        self.start = time.process_time()
        if begun is not None:
            self.offer(*begun)

    @property
    def spent(self) -> float:
        """CPU seconds since the clock started."""
        return time.process_time() - self.start

    def late(self) -> bool:
        """Whether the time is up."""
        return self.spent > self.limit

    def offer(self, tree: Node, value: float) -> None:
        """Keep a tree that is better than all before."""
        if value < self.value:
            self.tree, self.value, self.when = tree, value, self.spent

    def chain(self, found: Chain) -> None:
        """The same for a chain of segments."""
        self.offer(found.tree, self.form.value(found.energy, found.cycles))


def _annealed(best: Best, seed: int) -> str:
    """The paper's parameters."""
    if best.tree is not None:
        anneal(best.form, (best.tree, best.value), Cooling(), Random(seed), best.late, best.offer)
    return "found"


def _annealed_long(best: Best, seed: int) -> str:
    """As many steps as the time allows."""
    if best.tree is not None:
        begun = best.tree, best.value
        anneal_for(best.form, begun, Random(seed), lambda: best.spent / best.limit, best.late, best.offer)
    return "found"


def _grown(best: Best, seed: int) -> str:
    clock = Clock(best.late, lambda: best.spent / best.limit)
    TreeSearch(best.form, clock, Random(seed), best.offer, shakes=10**7).run()
    return "found"


def _sliced(kinds: tuple[Kind, ...]) -> Callable[[Best, int], str]:
    def search(best: Best, seed: int) -> str:
        slicing = Slicing(kinds, 16, 24)
        KaplaSolver(best.form, slicing, 4, stop=best.late, found=best.chain).solve()
        return "out of time" if best.late() else "found"

    return search


def _kapla(best: Best, seed: int) -> str:
    KaplaSolver(best.form, Slicing(), 4, stop=best.late, found=best.chain).solve()
    return "out of time" if best.late() else "found"


def _tangram(best: Best, seed: int) -> str:
    tangram_chain(best.form, stop=best.late, found=best.chain)
    return "out of time" if best.late() else "found"


def _proven(space: str) -> Callable[[Best, int], str]:
    def search(best: Best, seed: int) -> str:
        if space == "all":
            clock = Clock(best.late, lambda: 4 * best.spent / best.limit)
            TreeSearch(best.form, clock, Random(seed), best.offer, shakes=100).run()
        found = best_tree(best.form, space, best.late, best.tree if space == "all" else None)
        if found.tree is not None:
            best.tree, best.value, best.when = found.tree, found.value, best.spent
        return "proven" if found.proven else "out of time"

    return search


METHODS: dict[str, Callable[[Best, int], str]] = {
    "ls": _proven("ls"),
    "lp": _proven("lp"),
    "all": _proven("all"),
    "ls-chains": _sliced(TEMPORAL),
    "lp-chains": _sliced(SPATIAL),
    "tangram": _tangram,
    "kapla": _kapla,
    "sa": _annealed,
    "sa-long": _annealed_long,
    "set": _grown,
}
"""Searches by name: proven LS, LP and trees; chains of temporal and of spatial segments, Tangram and KAPLA;
SET's annealing with the paper's steps, and with as many as the time allows; the search for trees.
"""


def compute(cell: TreeCell) -> TreeFound:
    """Search, after a short search that has compiled everything."""
    try:
        _warm()
        form = form_of(cell)
        if cell.method == "bound":
            start = time.process_time()
            return TreeFound("found", bound=tree_bounds(form).value, seconds=time.process_time() - start)
        best = Best(form, cell.seconds)
        status = METHODS[cell.method](best, cell.seed)
        if best.tree is None:
            return TreeFound("nothing")
        cost = form.evaluate(best.tree)
        return TreeFound(status, best.value, cost.energy, cost.cycles, cost.dram, cost.hops, 0.0, best.when)
    except Exception as error:
        return TreeFound("error", message=f"{type(error).__name__}: {one_line(error)}")


def failed(message: str) -> TreeFound:
    """The answer of a worker that died."""
    return TreeFound("error", message=message)


@cache
def _warm() -> None:
    network = program_network("resnet").part((2, 3, 4), "warm")
    form = program_form(network, load_tiled_machine("set-edge-4x4"), 1, Rules())
    TreeSearch(form, Clock(lambda: False, lambda: 0.0), Random(0), lambda t, v: None, shakes=3).run()
