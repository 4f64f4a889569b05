"""One layer, and the question for its best mapping on a machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from rich.console import RenderableType

from tilewright.api.arguments import SearchRequest
from tilewright.api.display import Displayed
from tilewright.api.mapping.machine import Machine
from tilewright.api.mapping.question import Demands, LayersOnMachine
from tilewright.api.mapping.result import MappingResult, only_layer
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.operator import OperatorRecord, shape_text
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.selection import SelectedLayer


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
        return LayerOnMachine(self, machine, objective, **asked)

    def to_dict(self) -> dict[str, Any]:
        """The operator in full: dimensions, and tensors with their projections."""
        return {"name": self.name, **OperatorRecord.of(self.operator).model_dump()}

    def rows(self) -> list[dict[str, Any]]:
        """One row per dimension."""
        return [
            {"dimension": dimension.name, "bound": dimension.bound, "like": dimension.like}
            for dimension in self.operator.dimensions
        ]

    def views(self) -> Sequence[RenderableType]:
        """Statement, loops and tensors."""
        from tilewright.report.text.network import operator_views

        return operator_views(self.name, self.operator)

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.operator.kind} {shape_text(self.operator)})"

    @property
    def selected(self) -> list[SelectedLayer]:
        """What a search takes."""
        return [SelectedLayer(self.operator, (self.name,))]


class LayerOnMachine(LayersOnMachine):
    """The question for the best mapping of one layer on one machine; `solve` gives a `MappingResult`.

    Parameters
    ----------
    layer, machine : what runs, and where
    objective : ``energy``, ``cycles``, ``edp``, ``ed2p`` or ``E^a*D^b``
    constraints : demands such as ``cycles<=1e6``, ``utilization>=0.8``, ``tile(K@SPM)<=64``, ``spatial=C,K``
    cost_model : by default the machine's own
    factors : ``perfect`` (tiles divide each other) or ``imperfect`` (the last one may be smaller); by default
        the cost model's choice
    storage : ``even`` (all tensors of a level begin to live at one point; the default) or ``uneven`` (each at
        its own)
    tiles : of imperfect factors, ``trip-counts`` (the least tile of each; the default) or ``every`` integer
    then : after the objective ``energy`` the least ``cycles``, or the reverse
    pareto : also the whole Pareto front of energy and cycles
    best : also so many of the best mappings
    all_optimal : also all optimal mappings, or at most so many

    Raises
    ------
    InputError : for whatever does not fit the layer or the machine
    """

    def __init__(
        self,
        layer: Layer,
        machine: Machine | str | Path,
        objective: str = "energy",
        **demands: Unpack[Demands],
    ) -> None:
        self.layer = layer
        super().__init__(layer.model, layer.batch, layer.selected, (), machine, objective, **demands)

    @cached_property
    def problem(self) -> LayerProblem:
        """The problem as it is stated to solvers."""
        return self.stated.states[0]()

    def answer(self, request: SearchRequest) -> MappingResult:
        """What `solve` calls."""
        return only_layer(self.document(request), self.layer.name)

    def __repr__(self) -> str:
        return f"LayerOnMachine({self.layer.name!r} on {self.machine.name!r}, {self.objective})"


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
