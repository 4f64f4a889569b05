"""What a fused document claims, as a second opinion takes it."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.objective import parse_objective
from tilewright.report.records.mapping.fused_document import FusedDocument, FusedGraph, FusedLayer
from tilewright.solvers.mapping.fused.columns.linked import Linked
from tilewright.solvers.mapping.fused.columns.space import Listed
from tilewright.solvers.mapping.fused.second_opinion import FusedClaim
from tilewright.workloads.mapping.layer_reads import Reading


def fused_claim(document: FusedDocument, graph: FusedGraph, where: str) -> FusedClaim:
    """The claim of a document that is checked already.

    Parameters
    ----------
    document, graph : and who waits for whom in it
    where : what errors call it
    """
    space, totals = document.space, document.totals
    engine, model = document.arch.build(where), cost_model(document.cost_model)
    listed = Listed(engine, model, space.factors, space.storage, space.home)
    layers = {layer.name: layer for group in document.groups for layer in group.layers}
    groups = {tuple(tried.layers): Fraction(tried.bound_exact) for tried in document.tried}
    for group in document.groups:  # one that is used was tried; the higher claim counts
        names = tuple(layer.name for layer in group.layers)
        groups[names] = max(groups.get(names, Fraction(0)), Fraction(group.bound_exact))
    return FusedClaim(
        linked=_linked(document, graph, layers, where),
        most=space.most,
        listed=listed,
        objective=parse_objective(document.objective),
        bound=Fraction(totals.bound_exact),
        groups=groups,
        unfused={
            tuple(layer.name for layer in group.layers): Fraction(group.unfused.bound_exact)
            for group in document.groups
        },
        lines=tuple((Fraction(line.price), Fraction(line.least)) for line in totals.lines),
        fewest=Fraction(totals.fewest_cycles),
        infeasible=totals.infeasible,
    )


def _linked(document: FusedDocument, graph: FusedGraph, layers: dict[str, FusedLayer], where: str) -> Linked:
    return Linked(
        order=tuple(graph.order),
        operators={name: layers[name].operator.build(where) for name in graph.order if name in layers},
        waits=tuple(
            (
                link.layer,
                link.reader,
                None
                if link.axes is None
                else Reading(
                    link.reader,
                    link.operand,
                    link.layer,
                    tuple(link.axes),
                    tuple(link.offsets),
                    tuple(link.rows),
                    link.softmax,
                ),
            )
            for link in graph.links
        ),
        outputs=frozenset(graph.outputs),
        rows=frozenset((name, row) for name, layer in layers.items() for row in layer.rows),
        softmaxes=frozenset(name for name, layer in layers.items() if layer.rows and layer.softmax),
        online_softmax=document.space.online_softmax,
    )
