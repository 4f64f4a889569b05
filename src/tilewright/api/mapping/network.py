"""Networks, and the question for the best mapping of every layer on a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from rich.console import RenderableType

from tilewright.api.arguments import SearchRequest, named_arguments
from tilewright.api.display import Displayed
from tilewright.api.mapping.layer import Layer
from tilewright.api.mapping.machine import Machine, machine_of
from tilewright.api.mapping.phased import PhasesAsked, phased
from tilewright.api.mapping.question import Demands, LayersOnMachine
from tilewright.api.mapping.result import MappingDocument
from tilewright.foundation.errors import InputError, names_flags, unknown_name
from tilewright.foundation.loading import loading_within
from tilewright.report.records.mapping.operator import shape_text
from tilewright.workloads.catalog import list_models, resolve_model
from tilewright.workloads.network import Network as LayerGraph
from tilewright.workloads.onnx.options import Asker, OnnxOptions
from tilewright.workloads.selection import SelectedLayer, select_layers

if TYPE_CHECKING:
    from tilewright.api.mapping.fusion import FuseDemands, NetworkFused


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
    def left_out(self) -> tuple[str, ...]:
        """Nodes of its file that are missing, each with the reason."""
        return self.graph.left_out

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers in a topological order."""
        return tuple(Layer(layer.name, layer.operator, self.name, self.batch) for layer in self.graph.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole batch."""
        return self.graph.macs

    def __getitem__(self, name: str) -> Layer:
        """The layer of that name; raises ``KeyError``."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(unknown_name(name, [layer.name for layer in self.graph.layers]))

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.graph)

    @overload
    def on(
        self,
        machine: Machine | str | Path,
        objective: str = "energy",
        *,
        fuse: Literal[False] = False,
        **asked: Unpack[NetworkDemands],
    ) -> NetworkOnMachine: ...

    @overload
    def on(
        self,
        machine: Machine | str | Path,
        objective: str = "energy",
        *,
        fuse: Literal[True],
        **asked: Unpack[FuseDemands],
    ) -> NetworkFused: ...

    def on(
        self, machine: Machine | str | Path, objective: str = "energy", *, fuse: bool = False, **asked: Any
    ) -> NetworkOnMachine | NetworkFused:
        """The question for the best mapping of every distinct layer on a machine, which `solve` answers.

        Parameters
        ----------
        machine, objective, asked : as for `Layer.on`; and ``layers``, glob patterns of names, and
            ``all_operators``, pooling and element-wise layers too
        fuse : ask which layers pass results on without the outermost level instead, with the arguments of
            `NetworkFused`
        """
        if not fuse:
            return NetworkOnMachine(self, machine, objective, **asked)
        from tilewright.api.mapping.fusion import NetworkFused

        return NetworkFused(self.graph, machine, objective, **asked)

    def select(self, layers: Sequence[str] = (), all_operators: bool = False) -> list[SelectedLayer]:
        """The distinct operators among the layers of some names; raises ``InputError`` where none is left."""
        return select_layers(self.graph, layers, all_operators)

    def to_dict(self) -> dict[str, Any]:
        """Layers and links as plain data: what ``tilewright show --format json`` prints."""
        from tilewright.report.records.network import network_data

        return network_data(self.graph)

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer."""
        return [
            {
                "name": layer.name,
                "kind": layer.operator.kind,
                "shape": shape_text(layer.operator),
                "macs": layer.operator.macs,
                "parameters": layer.parameters,
            }
            for layer in self.graph.layers
        ]

    def views(self) -> Sequence[RenderableType]:
        """A table of the distinct layers."""
        from tilewright.report.text.network import network_views

        return network_views(self.graph)

    def __repr__(self) -> str:
        return f"Network({self.name!r}, {len(self)} layers, batch {self.batch})"


class NetworkDemands(Demands, total=False):
    """The keyword arguments of `NetworkOnMachine`, which explains them."""

    layers: Sequence[str]
    all_operators: bool
    phases: str | None
    lengths: int | None


class NetworkOnMachine(LayersOnMachine):
    """The question for the best mapping of every distinct layer; `solve` gives a `MappingDocument`.

    Parameters
    ----------
    network : what runs
    layers : glob patterns of layer names, one of which must match; empty for all layers
    all_operators : pooling and element-wise layers too
    phases : how often a language model reads a prompt and adds a token, such as ``prefill:1,decode:200``; the
        cache grows by a token with every step
    lengths : so many steps are searched, 5 by default; the others are bounded by those

    The others are those of `LayerOnMachine`.
    """

    def __init__(
        self,
        network: Network,
        machine: Machine | str | Path,
        objective: str = "energy",
        *,
        layers: Sequence[str] = (),
        all_operators: bool = False,
        phases: str | None = None,
        lengths: int | None = None,
        **demands: Unpack[Demands],
    ) -> None:
        self.network, record = network, None
        machine = machine_of(machine)
        with named_arguments():
            if phases is None:
                selected = network.select(layers, all_operators)
            else:
                asked = PhasesAsked(phases, lengths, tuple(layers), bool(demands.get("constraints")))
                spaces = demands.get("factors"), demands.get("storage"), demands.get("tiles")
                record, selected = phased(
                    network.name, asked, [machine.engine], demands.get("cost_model"), spaces
                )
        left_out = network.graph.left_out
        super().__init__(network.name, network.batch, selected, left_out, machine, objective, **demands)
        self.phases = record

    def answer(self, request: SearchRequest) -> MappingDocument:
        """What `solve` calls."""
        return self.document(request)

    def __repr__(self) -> str:
        count = len(self.stated.layers)
        return f"NetworkOnMachine({self.network.name!r} on {self.machine.name!r}, {count} distinct layers)"


def network(
    text: str | Path,
    batch: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    skip: bool = False,
    branches: Mapping[str, str] | None = None,
    trips: Mapping[str, int] | None = None,
    stored_widths: bool = False,
    time_limit: float | None = None,
) -> Network:
    """A network by name or from a file.

    ::

        net = tw.network("detector.onnx", batch=4, dims={"height": 320, "x.3": 320})

    Parameters
    ----------
    text : a name that `models` lists, an ONNX file, or a YAML file of layers; ``:training`` behind it gives
        the training graph
    batch : samples; by default the model's own number
    dims : sizes of open axes of an ONNX model's inputs, by name, or by input and axis
    skip : leave out unsupported nodes of an ONNX model; the network's ``left_out`` lists them
    branches : ``then`` or ``else``, by name or glob pattern of nodes ``If`` with conditions that depend on
        the data
    trips : rounds, by name or glob pattern of nodes ``Loop`` and ``Scan``
    stored_widths : let layers state the bits of elements as a quantised ONNX model stores them
    time_limit : seconds that reading and importing it may take

    Raises
    ------
    InputError : for an unknown name with the nearest one, any fault of the file, and where time or memory do
        not suffice
    """
    asker: Asker = "flags" if names_flags.get() else "arguments"
    options = OnnxOptions(
        dict(dims or {}), skip, dict(branches or {}), dict(trips or {}), asker, stored_widths
    )
    for name, size in (*options.dims.items(), *options.trips.items()):
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 10**9:
            argument = "dims" if name in options.dims else "trips"
            raise InputError(argument, name, f"expected a number of at least 1, got {size!r}")
    for name, side in options.branches.items():
        if side not in ("then", "else"):
            raise InputError("branches", name, f"expected then or else, got {side!r}")
    with loading_within(time_limit), named_arguments():
        return Network(resolve_model(str(text), batch, options))


def models() -> list[str]:
    """Names of the networks that need no file."""
    return [*list_models()]
