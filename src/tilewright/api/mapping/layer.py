"""Layers and networks: what is to be mapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from rich.console import RenderableType

from tilewright.api.display import Displayed
from tilewright.report.records.mapping.operator import OperatorRecord, shape_text
from tilewright.report.records.network import network_data
from tilewright.report.text.network import network_views, operator_views
from tilewright.workloads.catalog import list_models, resolve_model
from tilewright.workloads.errors import InputError, unknown_name
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network as LayerGraph
from tilewright.workloads.selection import SelectedLayer, select_layers

if TYPE_CHECKING:
    from tilewright.api.mapping.machine import Machine
    from tilewright.api.mapping.problem import Demands, LayerOnMachine, NetworkDemands, NetworkOnMachine


class Layer(Displayed):
    """One operator: a convolution, a matrix product, or any perfect loop nest.

    Made by `layer`, or taken from a network.

    Parameters
    ----------
    name : for tables
    model : the text or the network that it comes from
    batch : samples that its bounds stand for
    """

    def __init__(self, name: str, operator: Operator, model: str, batch: int = 1) -> None:
        self.name = name
        self.operator = operator
        self.model = model
        self.batch = batch

    @property
    def bounds(self) -> dict[str, int]:
        """Iterations of every dimension."""
        return dict(self.operator.bounds)

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.operator.macs

    def on(
        self, machine: Machine | str | Path, objective: str = "energy", **asked: Unpack[Demands]
    ) -> LayerOnMachine:
        """The question for the best mapping of this layer on a machine, which `solve` answers.

        Parameters
        ----------
        machine : or a preset's name, or a machine file
        objective : ``energy``, ``cycles``, ``edp``, ``ed2p`` or ``E^a*D^b``
        asked : further arguments of `LayerOnMachine`: ``constraints``, ``cost_model``, ``factors``,
            ``storage``, ``tiles``, ``then``, ``pareto``, ``best``, ``all_optimal``

        Raises
        ------
        InputError : for whatever does not fit the layer or the machine
        """
        from tilewright.api.mapping.problem import LayerOnMachine

        return LayerOnMachine(self, machine, objective, **asked)

    def to_dict(self) -> dict[str, Any]:
        """The operator in full: dimensions, and tensors with their projections."""
        return {"name": self.name, **OperatorRecord.of(self.operator).model_dump()}

    def rows(self) -> list[dict[str, Any]]:
        """One row per dimension."""
        return [
            {"dimension": one.name, "bound": one.bound, "like": one.like} for one in self.operator.dimensions
        ]

    def views(self) -> Sequence[RenderableType]:
        """Statement, loops and tensors."""
        return operator_views(self.name, self.operator)

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.operator.kind} {shape_text(self.operator)})"

    @property
    def selected(self) -> list[SelectedLayer]:
        """What a search takes."""
        return [SelectedLayer(self.operator, (self.name,))]


class Network(Displayed):
    """A graph of layers.  Made by `network`.

    Parameters
    ----------
    graph : the layers and the tensors between them
    """

    def __init__(self, graph: LayerGraph) -> None:
        self.graph = graph

    @property
    def name(self) -> str:
        """As tables show it."""
        return self.graph.name

    @property
    def batch(self) -> int:
        """Samples per run."""
        return self.graph.batch

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers in a topological order."""
        return tuple(Layer(one.name, one.operator, self.name, self.batch) for one in self.graph.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole batch."""
        return self.graph.macs

    def __getitem__(self, name: str) -> Layer:
        """The layer of that name; raises ``KeyError``."""
        for one in self.layers:
            if one.name == name:
                return one
        raise KeyError(unknown_name(name, [one.name for one in self.graph.layers]))

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.graph)

    def on(
        self, machine: Machine | str | Path, objective: str = "energy", **asked: Unpack[NetworkDemands]
    ) -> NetworkOnMachine:
        """The question for the best mapping of every distinct layer on a machine, which `solve` answers.

        Parameters
        ----------
        machine, objective, asked : as for `Layer.on`; and ``layers``, glob patterns of names, and
            ``all_operators``, pooling and element-wise layers too
        """
        from tilewright.api.mapping.problem import NetworkOnMachine

        return NetworkOnMachine(self, machine, objective, **asked)

    def select(self, layers: Sequence[str] = (), all_operators: bool = False) -> list[SelectedLayer]:
        """The distinct operators among the layers of some names; raises ``InputError`` where none is left."""
        return select_layers(self.graph, layers, all_operators)

    def to_dict(self) -> dict[str, Any]:
        """Layers and links as plain data: what ``tilewright show --format json`` prints."""
        return network_data(self.graph)

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer."""
        return [
            {
                "name": one.name,
                "kind": one.operator.kind,
                "shape": shape_text(one.operator),
                "macs": one.operator.macs,
                "parameters": one.parameters,
            }
            for one in self.graph.layers
        ]

    def views(self) -> Sequence[RenderableType]:
        """A table of the distinct layers."""
        return network_views(self.graph)

    def __repr__(self) -> str:
        return f"Network({self.name!r}, {len(self)} layers, batch {self.batch})"


def layer(text: str, batch: int | None = None) -> Layer:
    """A layer from its text.

    Parameters
    ----------
    text : such as ``conv:K=64,C=64,P=56,Q=56,R=3,S=3,pad=1``, ``gemm:M=512,N=768,K=768`` or
        ``nest:O[n,k] += W[k,c] * I[n,c] : n=1,k=64,c=64``
    batch : samples, where the text does not give them

    Raises
    ------
    InputError : naming the field and what was expected
    """
    graph = resolve_model(text, batch)
    if len(graph) != 1:
        raise InputError(text, None, f"has {len(graph)} layers, expected one (tw.network takes several)")
    return Layer(graph.layers[0].name, graph.layers[0].operator, graph.name, graph.batch)


def network(text: str | Path, batch: int | None = None) -> Network:
    """A network by name or from a file.

    Parameters
    ----------
    text : a name that `models` lists, an ONNX file, or a YAML file of layers; ``:training`` behind it gives
        the training graph
    batch : samples; by default the model's own number

    Raises
    ------
    InputError : for an unknown name with the nearest one, or any fault of the file
    """
    return Network(resolve_model(str(text), batch))


def models() -> list[str]:
    """Names of the networks that need no file."""
    return [*list_models()]
