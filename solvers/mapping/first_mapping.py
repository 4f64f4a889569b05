"""A mapping of every layer at no cost: what a search has to show that ended before it found any."""

from __future__ import annotations

from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin

SOURCE = "single elements"


def offer_single_elements(search: LayerSearch) -> None:
    """Offer the mapping that keeps one element of every tensor in every store inside the outermost level.

    Whatever the machine, hardly any store is too small for it; demands may exclude it.  It is about the worst
    of all legal mappings, and only offered where nothing else is known.
    """
    if search.key is None:
        search.offer(_single_elements(search), SOURCE, Origin.HEURISTIC)


def _single_elements(search: LayerSearch) -> Mapping:
    operator, engine = search.problem.operator, search.problem.engine
    stores = [
        [Storage(tensor.name, level.name) for tensor in operator.tensors if tensor.role in level.keeps]
        for level in engine.levels
    ]
    loops = [Temporal(dim, 1) for dim, bound in operator.bounds.items() if bound > 1]
    nodes: list[Node] = [*stores[0], *loops]
    return Mapping((*nodes, *(store for level in stores[1:] for store in level)))
