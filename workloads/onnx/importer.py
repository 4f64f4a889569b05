"""Networks from ONNX models.

Nodes that compute become layers.  An activation, normalisation or other point-wise node with a single
operand is fused into the layer before it where it is that layer's only reader.  Nodes that only move or
rename data (``Reshape``, ``Transpose``, ``Concat``, ``Slice``, ...) become part of the links, which say what
they pass through.  Everything that does not depend on the network's inputs is a constant.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import cast

import onnx

from tilewright.foundation.errors import BudgetError, InputError
from tilewright.foundation.loading import check_limit
from tilewright.workloads.alignment import Arrival, aligned
from tilewright.workloads.mapping.layer_text import unique_name
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Layer, Link, Network, Parameter
from tilewright.workloads.onnx.budgets import MOST_PIECES, MOST_STEPS
from tilewright.workloads.onnx.expansion.expand import expanded
from tilewright.workloads.onnx.graph import Node, OnnxGraph, listed_causes, prepare, read_model
from tilewright.workloads.onnx.moved_views import moved_view, node_rows
from tilewright.workloads.onnx.operations import (
    CELLS,
    EXPANDED,
    FOREIGN,
    MOVING,
    OPENED,
    POINTWISE,
    RENAMING,
    SUPPORTED,
    TRANSFORMING,
)
from tilewright.workloads.onnx.operators import Built, build
from tilewright.workloads.onnx.options import OnnxOptions
from tilewright.workloads.onnx.parameters import learned_parameters
from tilewright.workloads.onnx.stored_widths import StoredWidths
from tilewright.workloads.views import View

WEIGHT_SUFFIX = re.compile(r"([_./](weights?|kernel|w|W)(_\d+)?)$")


def operator_support() -> list[tuple[str, str]]:
    """Every ONNX operation that can be imported, sorted, with what becomes of it."""

    def becomes(op: str) -> str:
        if op in RENAMING:
            return "identity: its result is its operand"
        if op in MOVING:
            return "part of a link: data movement"
        if op in POINTWISE:
            return "part of the layer before it, or an element-wise layer"
        if op in OPENED:
            return "the nodes that it holds"
        return "several layers" if op in EXPANDED else "a layer"

    own = [(op, becomes(op)) for op in SUPPORTED | OPENED]
    foreign = [
        (f"{domain}.{op}", "what it computes in ONNX") for domain, ops in FOREIGN.items() for op in ops
    ]
    return [*sorted(own), *sorted(foreign)]


def load_onnx(
    source: str | Path | onnx.ModelProto,
    batch: int | None = None,
    name: str | None = None,
    options: OnnxOptions | None = None,
    *,
    bounded: bool = True,
) -> Network:
    """Import a model.

    Parameters
    ----------
    source : a file, or a loaded model
    batch : samples per run; ``None`` keeps the model's own number, or 1 where the model leaves it open
    name : the network's name; by default the file's (or graph's)
    bounded : whether the model is from anywhere; one of this package or of onnx's own needs no limits

    Returns
    -------
    The network.  A layer is named after its node, or after its weights where the node has no telling name.

    Raises
    ------
    InputError : naming the file and the node, for a file that is not a complete ONNX model, an operation or
        attribute that is not supported, shapes that cannot be inferred, and a model that cannot run at
        this batch size
    """
    if isinstance(source, onnx.ModelProto):
        model, where = source, name or source.graph.name or "ONNX model"
    else:
        model, where = read_model(Path(source)), str(source)
    options = options or OnnxOptions()
    title = name or (where if isinstance(source, onnx.ModelProto) else Path(source).stem)

    def imported(opened: bool) -> Network:
        graph = expanded(prepare(model, where, batch, options, opened=opened, bounded=bounded))
        return _Importer(graph, options, opened=opened).network(title, bounded=bounded)

    try:
        return imported(opened=False)
    except BudgetError:
        raise
    except InputError:
        check_limit(where)
    return imported(opened=True)


@dataclass(frozen=True, slots=True)
class _Moves:
    """The moves that data has passed through, the last one first, shared by all that came the same way."""

    op: str
    before: _Moves | None
    count: int

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the first one first."""
        names, at = [], cast("_Moves | None", self)
        while at is not None:
            names.append(at.op)
            at = at.before
        return tuple(reversed(names))


@dataclass(frozen=True, slots=True)
class _Source:
    """Where (part of) a tensor's data comes from; the fields are those of the `Link` that it becomes."""

    producer: str | None
    tensor: str
    elements: int
    channel: int | None = 0
    moves: _Moves | None = None
    view: View | None = None

    def moved(self, op: str, channel: int | None, view: View | None = None) -> _Source:
        """The same data after one more move."""
        moves = _Moves(op, self.moves, 1 + (self.moves.count if self.moves else 0))
        return replace(self, channel=channel, moves=moves, view=view)

    def link(self, consumer: str, operand: str) -> Link:
        moves = self.moves.names if self.moves else ()
        return Link(self.producer, consumer, operand, self.tensor, self.elements, self.channel, moves)


@dataclass(slots=True)
class _Draft:
    """A layer that may still take in the nodes that follow it."""

    node: Node
    operator: Operator
    stored_weights: bool
    fused: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    learned: list[Parameter] = field(default_factory=list)
    rows: tuple[int, ...] = ()


class _Importer:
    """Makes the network of a graph.

    Parameters
    ----------
    graph : with shapes; nodes that stand for several layers expanded
    options : of the user
    opened : whether the graph was opened: then all faults are reported at once, otherwise the first
    """

    def __init__(self, graph: OnnxGraph, options: OnnxOptions, *, opened: bool) -> None:
        self.graph = graph
        self.options = options
        self.opened = opened
        self.causes: dict[str, str] = {}
        self.left_out: list[str] = []
        self.drafts: dict[str, _Draft] = {}
        self.links: list[Link] = []
        self.tables: list[Parameter] = []
        self.names: set[str] = set()
        self.pieces = self.steps = 0
        self.readers = _readers(graph)
        self.widths = StoredWidths(graph) if options.stored_widths else None
        self.sources: dict[str, tuple[_Source, ...]] = {
            tensor: (_Source(None, tensor, math.prod(graph.shapes[tensor])),) for tensor in graph.inputs
        }

    def network(self, name: str, *, bounded: bool) -> Network:
        for node in self.graph.nodes:
            if bounded:
                check_limit(self.graph.where, node.label)
            try:
                if node.label in self.graph.unsupported:
                    raise InputError(self.graph.where, node.label, self.graph.unsupported[node.label])
                sources = self.sourced(node)
            except BudgetError:
                raise
            except InputError as error:
                if not self.opened:
                    raise
                sources = self.passed(node, error)
                self.sources.update(dict.fromkeys(filter(None, node.outputs), sources))
                continue
            self.sources.update(dict.fromkeys(filter(None, node.outputs), sources))
            if node.op in MOVING and len(node.outputs) > 1:
                for tensor in filter(None, node.outputs[1:]):
                    self.sources[tensor] = self.cut(node, self.gathered(node, tensor), tensor)
        if self.causes:
            first, *_ = self.causes
            message = listed_causes(self.causes).removeprefix(f"{first}: ")
            raise InputError(self.graph.where, first, message + self.options.skip_hint)
        if not self.drafts:
            raise InputError(self.graph.where, None, "expected at least one node that computes")
        leaving = [
            source.producer for tensor in self.graph.outputs for source in self.sources.get(tensor, ())
        ]
        layers = [
            Layer(
                title,
                draft.operator,
                draft.node.op,
                tuple(draft.fused),
                tuple(draft.nodes),
                draft.stored_weights,
                tuple(draft.learned),
                draft.rows,
            )
            for title, draft in self.drafts.items()
        ]
        outputs = {producer for producer in leaving if producer is not None}
        return Network(
            name,
            layers,
            self.links,
            batch=self.graph.batch,
            outputs=outputs,
            tables=self.tables,
            left_out=self.left_out,
        )

    def sourced(self, node: Node) -> tuple[_Source, ...]:
        """Where a node's result comes from: the layer that it becomes or joins, or what it moves."""
        if node.op in RENAMING:
            return self.known(node, node.data[0])
        if node.op in MOVING:
            moved = self.moved(node)
            self.tables.extend(learned_parameters(self.graph, node))
            return moved
        return self.fused(node) or self.layer(node)

    def known(self, node: Node, tensor: str) -> tuple[_Source, ...]:
        """Where a tensor comes from; raises ``InputError`` for one that is read before it is made."""
        sources = self.sources.get(tensor)
        if not sources:
            raise InputError(self.graph.where, node.label, f"reads tensor {tensor!r} before it is made")
        return sources

    def passed(self, node: Node, error: InputError) -> tuple[_Source, ...]:
        """A node that is left out: what reads it reads what it would have read."""
        if self.options.skip:
            self.left_out.append(f"{node.label}: {error.message}")
        elif self.causes and any(name not in self.graph.shapes for name in node.inputs if name):
            pass  # it follows from a cause that is reported
        else:
            self.causes.setdefault(node.label, error.message)
        return self.counted(
            node,
            (source.moved(node.op, None) for tensor in node.data for source in self.sources.get(tensor, ())),
        )

    def layer(self, node: Node) -> tuple[_Source, ...]:
        built = build(self.graph, node)
        if self.widths is not None:
            built = replace(built, operator=self.widths.of(node, built))
        name = unique_name(_layer_name(node), self.names)
        self.drafts[name] = _Draft(
            node,
            built.operator,
            built.stored_weights,
            nodes=[node.name or node.label],
            learned=list(learned_parameters(self.graph, node)),
            rows=node_rows(self.graph, node),
        )
        for operand, tensor in built.operands.items():
            sources = self.known(node, tensor)
            self.steps += sum(source.moves.count for source in sources if source.moves)
            if self.steps > MOST_STEPS:
                message = f"expected at most {MOST_STEPS:,} moves of data on the way to all layers"
                raise BudgetError(self.graph.where, node.label, message)
            self.links.extend(self.linked(source, name, operand, built, len(sources)) for source in sources)
        shape = self.graph.shape(node, node.outputs[0])
        whole = View.whole(shape) if node.op not in CELLS | TRANSFORMING else None
        return (_Source(name, node.outputs[0], math.prod(shape), view=whole),)

    def linked(self, source: _Source, name: str, operand: str, built: Built, pieces: int) -> Link:
        """The link of a source to an operand of a new layer, with its axes where they are known."""
        link = source.link(name, operand)
        if source.producer is None:
            return link
        view = source.view if self.drafts[name].node.op not in CELLS | TRANSFORMING else None
        arrival = Arrival(view, link.moves, pieces == 1, built.before)
        return aligned(link, self.drafts[source.producer].operator, built.operator, arrival)

    def fused(self, node: Node) -> tuple[_Source, ...]:
        """The node as part of the layer before it; nothing where it has to be a layer of its own."""
        if node.op not in POINTWISE | CELLS or len(node.data) != 1:
            return ()
        (tensor,) = node.data
        sources = self.known(node, tensor)
        source = sources[0]
        if len(sources) > 1 or source.moves or source.producer is None:
            return ()
        if self.readers[source.tensor] != 1:
            return ()
        shape = self.graph.shape(node, tensor)
        if shape != self.graph.shape(node, node.outputs[0]) or shape != self.graph.shape(node, source.tensor):
            return ()
        draft = self.drafts[source.producer]
        draft.fused.append(node.op)
        draft.nodes.append(node.name or node.label)
        draft.learned.extend(learned_parameters(self.graph, node))
        draft.rows = tuple(sorted({*draft.rows, *node_rows(self.graph, node)}))
        return (replace(source, tensor=node.outputs[0]),)

    def moved(self, node: Node) -> tuple[_Source, ...]:
        """Sources of a moved tensor, with the places of their channels and elements where these are known."""
        return self.cut(node, self.gathered(node, node.outputs[0]), node.outputs[0])

    def gathered(self, node: Node, result: str) -> Iterator[_Source]:
        axis, axes = node.attributes.get("axis", 0), len(self.graph.shape(node, node.outputs[0]))
        by_channel = node.op == "Concat" and axes > 1 and axis in (1, 1 - axes)
        channel = 0
        for place, tensor in enumerate(node.inputs if node.op == "Concat" else node.data):
            if tensor in node.data:
                for source in self.known(node, tensor):
                    at = channel + source.channel if by_channel and source.channel is not None else None
                    view = source.view and moved_view(self.graph, node, source.view, place, result)
                    yield source.moved(node.op, at, view)
            if by_channel:
                channel += self.graph.shape(node, tensor)[1]

    def counted(self, node: Node, sources: Iterable[_Source]) -> tuple[_Source, ...]:
        """Pieces that a tensor consists of; raises ``InputError`` where they are too many."""
        counted = tuple(islice(sources, MOST_PIECES - self.pieces + 1))
        self.pieces += len(counted)
        if self.pieces > MOST_PIECES:
            message = f"makes a tensor of too many pieces, expected at most {MOST_PIECES:,} in a model"
            raise BudgetError(self.graph.where, node.label, message)
        return counted

    def cut(self, node: Node, sources: Iterable[_Source], tensor: str) -> tuple[_Source, ...]:
        """No more of a source is read than the moved tensor holds."""
        limit = self.graph.elements(node, tensor)
        return self.counted(
            node, (replace(source, elements=min(source.elements, limit)) for source in sources)
        )


def _readers(graph: OnnxGraph) -> Counter[str]:
    """How many nodes and graph outputs read each tensor, under the name that it was made with."""
    made_as: dict[str, str] = {}
    readers: Counter[str] = Counter()
    for node in graph.nodes:
        roots = [made_as.get(tensor, tensor) for tensor in node.data]
        if node.op in RENAMING:
            made_as.update(dict.fromkeys(node.outputs, roots[0]))
        else:
            readers.update(roots)
    readers.update(made_as.get(tensor, tensor) for tensor in graph.outputs)
    return readers


def _layer_name(node: Node) -> str:
    """The node's name, or (where that is empty or a mere number) its weights', or operation and place."""
    if not re.fullmatch(r"n?\d*", node.name):
        return node.name
    if len(node.inputs) > 1 and node.op not in POINTWISE and WEIGHT_SUFFIX.search(node.inputs[1]):
        return WEIGHT_SUFFIX.sub("", node.inputs[1]).removeprefix("gpu_0/")
    return f"{node.op}_{node.position}"
