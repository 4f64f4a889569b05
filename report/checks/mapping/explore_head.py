"""What of an exploration contradicts its head: settings, completeness, the layers' own best designs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tilewright.foundation.errors import InputError
from tilewright.report.records.claims import number
from tilewright.report.records.mapping.explore import BestDesign, DesignRecord, ExploreDocument, LayerBest
from tilewright.solvers.mapping.methods import method


def shown_faults(record: DesignRecord | BestDesign | LayerBest, here: str) -> Iterator[str]:
    """Value and bound as they are shown, against their exact forms."""
    for name, shown, exact in (
        ("value", record.value, record.value_exact),
        ("bound", record.bound, record.bound_exact),
    ):
        if shown != (None if exact is None else number(Fraction(exact))):
            yield f"{here}.{name}: {shown}, but {name}_exact is {exact}"
        if exact is not None and exact != str(Fraction(exact)):
            yield f"{here}.{name}_exact: {exact}, expected {Fraction(exact)}"


def head_faults(document: ExploreDocument) -> Iterator[str]:
    """Settings that no search can have, and whether all that was asked for is proven."""
    settings = document.settings
    try:
        if not method(settings.solver).exact:
            yield f"settings.solver: {settings.solver}, which is a heuristic"
    except InputError as error:
        yield f"settings.solver: {error.message}"
    for name, seconds in (("time_limit_s", settings.time_limit_s), ("layer_limit_s", settings.layer_limit_s)):
        if seconds is not None and seconds <= 0:
            yield f"settings.{name}: {seconds}, expected more than 0"
    if document.wall_s < 0:
        yield f"wall_s: {document.wall_s}, expected at least 0"
    if "tilewright" not in document.versions:
        yield "versions: that of tilewright is missing"
    if document.complete != _is_complete(document):
        yield f"complete: {document.complete}, the designs' statuses say {_is_complete(document)}"


def _is_complete(document: ExploreDocument) -> bool:
    """Whether all that was asked for is proven, by what the document states of it."""
    settings, designs, front = document.settings, document.designs, document.front
    is_pruned = all(row.status in ("infeasible", "refused") for row in designs)
    proven = is_pruned if document.best is None else document.best.optimal
    bests = all(row.optimal for row in document.layer_bests)
    wanted = len(document.layers) if settings.each_layer else 0
    unknown = any(row.value is None and row.status not in ("infeasible", "refused") for row in designs)
    return (
        proven
        and bests
        and len(document.layer_bests) == wanted
        and (front is None or front.complete)
        and not any(row.status == "open" for row in designs)
        and not ((settings.every or settings.values) and unknown)
    )


def layer_best_faults(document: ExploreDocument) -> Iterator[str]:
    """The best design of each layer alone is one of the grid, and not worse than the network's best."""
    names = [layer.name for layer in document.layers]
    reported = [layer_best.layer for layer_best in document.layer_bests]
    if reported and not document.settings.each_layer:
        yield "layer_bests: there, but settings do not ask for them"
    if reported != [name for name in names if name in set(reported)]:
        yield f"layer_bests: of {', '.join(reported)}, expected layers of the document in their order"
        return
    best = document.best
    own_keys = {} if best is None else {layer.name: layer.value_key for layer in best.result.layers}
    for index, layer_best in enumerate(document.layer_bests):
        here = f"layer_bests[{index}]"
        yield from shown_faults(layer_best, here)
        value, bound = Fraction(layer_best.value_exact), Fraction(layer_best.bound_exact)
        if bound > value:
            yield f"{here}.bound: {layer_best.bound} above the value {layer_best.value}"
        if layer_best.optimal != (value == bound):
            equal = "equal" if value == bound else "not equal"
            yield f"{here}.optimal: {layer_best.optimal}, value and bound are {equal}"
        designs = document.designs
        if not 0 <= layer_best.index < len(designs) or designs[layer_best.index].status == "refused":
            yield f"{here}.index: {layer_best.index}, which is no machine of the grid"
        elif designs[layer_best.index].fields != layer_best.fields:
            yield f"{here}.fields: not those of designs[{layer_best.index}]"
        known, same = own_keys.get(layer_best.layer), best is not None and layer_best.index == best.index
        if known is not None and (value > known or (same and value != known)):
            yield f"{here}.value: {layer_best.value}, the best design's own mapping has {number(known)}"
