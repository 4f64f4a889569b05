"""Networks and tiled machines as plain data, so that a document stands on its own."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.foundation.units import LIMIT
from tilewright.hardware.scheduling.own_engine import own_tile
from tilewright.hardware.scheduling.tiled.machine import (
    TiledMachine,
    TileEngine,
    machine_to_dict,
    tile_engine,
)
from tilewright.report.records.mapping.engine import EngineRecord, Exact
from tilewright.report.records.mapping.operator import OperatorRecord, Record
from tilewright.workloads.network import Layer, Link, Network
from tilewright.workloads.views import Extent, View

MAX_SIDE = 256
"""Engines along a side of a grid in a document, at most."""

Positive = Annotated[float, Field(ge=1 / LIMIT, le=LIMIT, allow_inf_nan=False)]
Energy = Annotated[float, Field(ge=0, le=LIMIT, allow_inf_nan=False)]


def _objective(text: str) -> str:
    try:
        tiled_objective(text)
    except InputError as error:
        raise ValueError(error.message) from error
    return text


ObjectiveText = Annotated[
    str,
    AfterValidator(_objective),
    Field(description="makespan, energy, edp, ed2p, or whole powers such as E^2*D"),
]


class PlacedLayerRecord(Record):
    """A layer of a network."""

    name: str
    operator: int = Field(ge=0, description="its place among the network's operators")
    stored_weights: bool


class LinkRecord(Record):
    """A tensor on its way to one operand of one layer."""

    producer: str | None
    consumer: str
    operand: str
    tensor: str
    elements: int
    channel: int | None
    moves: list[str]

    @classmethod
    def of(cls, link: Link) -> LinkRecord:
        """The record of a link; a `ViewedLinkRecord` where more than these fields decides what is read."""
        fields: dict[str, Any] = {
            "producer": link.producer,
            "consumer": link.consumer,
            "operand": link.operand,
            "tensor": link.tensor,
            "elements": link.elements,
            "channel": link.channel,
            "moves": list(link.moves),
        }
        if link.view is None and not link.rows:
            return LinkRecord(**fields)
        view = None if link.view is None else ViewRecord.of(link.view)
        return ViewedLinkRecord(**fields, rows=list(link.rows), view=view)

    def build(self) -> Link:
        """The link."""
        return Link(
            self.producer,
            self.consumer,
            self.operand,
            self.tensor,
            self.elements,
            self.channel,
            tuple(self.moves),
        )


class ExtentRecord(Record):
    """One axis of a view."""

    size: int = Field(ge=1, le=LIMIT)
    digits: list[Annotated[list[Annotated[int, Field(ge=1, le=LIMIT)]], Field(min_length=2, max_length=2)]]
    start: int = Field(ge=0, le=LIMIT)

    @model_validator(mode="after")
    def _check(self) -> ExtentRecord:
        if self.start + math.prod(size for size, _ in self.digits) > self.size:
            raise ValueError("more elements than the axis has")
        return self


class ViewRecord(Record):
    """Which element of a result stands where in an operand."""

    axes: list[ExtentRecord]
    first: int = Field(ge=0, le=LIMIT)

    @classmethod
    def of(cls, view: View) -> ViewRecord:
        """The record of a view."""
        axes = [
            ExtentRecord(size=axis.size, digits=[list(digit) for digit in axis.digits], start=axis.start)
            for axis in view.axes
        ]
        return cls(axes=axes, first=view.first)

    def build(self) -> View:
        """The view."""
        axes = (
            Extent(axis.size, tuple((size, stride) for size, stride in axis.digits), axis.start)
            for axis in self.axes
        )
        return View(tuple(axes), self.first)


class ViewedLinkRecord(LinkRecord):
    """A link of which more is known than how many elements it has."""

    rows: list[Annotated[int, Field(ge=0)]]
    view: ViewRecord | None

    def build(self) -> Link:
        """The link."""
        view = None if self.view is None else self.view.build()
        return replace(super().build(), rows=tuple(self.rows), view=view)


class NetworkRecord(Record):
    """A network of batch 1; equal operators stand once."""

    name: str
    operators: list[OperatorRecord] = Field(min_length=1)
    layers: list[PlacedLayerRecord] = Field(min_length=1)
    links: list[ViewedLinkRecord | LinkRecord]
    outputs: list[str]

    @classmethod
    def of(cls, network: Network) -> NetworkRecord:
        """The record of a network."""
        places: dict[Any, int] = {}
        for layer in network.layers:
            places.setdefault(layer.operator, len(places))
        return cls(
            name=network.name,
            operators=[OperatorRecord.of(item) for item in places],
            layers=[
                PlacedLayerRecord(
                    name=item.name, operator=places[item.operator], stored_weights=item.stored_weights
                )
                for item in network.layers
            ],
            links=[LinkRecord.of(link) for link in network.links],
            outputs=sorted(network.outputs),
        )

    def build(self, where: str) -> Network:
        """The network; raises ``InputError`` where the record contradicts itself."""
        operators = [item.build(f"{where}.operators[{i}]") for i, item in enumerate(self.operators)]
        for layer in self.layers:
            if layer.operator >= len(operators):
                raise InputError(where, layer.name, f"operator {layer.operator} of {len(operators)}")
        layers = [
            Layer(item.name, operators[item.operator], "document", stored_weights=item.stored_weights)
            for item in self.layers
        ]
        links = [link.build() for link in self.links]
        made = {layer.name: math.prod(axis.size for axis in layer.operator.output.axes) for layer in layers}
        for link in links:
            if link.view is not None and link.view.last >= made.get(link.producer or "", math.inf):
                raise InputError(where, link.tensor, f"its view leaves the result of {link.producer}")
        try:
            return Network(self.name, layers, links, outputs=self.outputs)
        except InputError as error:
            raise InputError(where, error.field, error.message) from None


class TileEngineRecord(Record):
    """One engine of the grid, fields as in the machine's file."""

    rows: int = Field(ge=1, le=LIMIT)
    columns: int = Field(ge=1, le=LIMIT)
    dataflow: Literal["kc", "yx", "pairs"]
    vector_lanes: int = Field(ge=1, le=LIMIT)
    buffer_bytes: int = Field(ge=1, le=LIMIT)
    mac_energy: Energy
    buffer_read_energy: Energy
    buffer_write_energy: Energy
    register_energy: Energy
    vector_energy: Energy
    lanes: int = Field(ge=1, le=LIMIT)
    startup_cycles: int = Field(ge=0, le=LIMIT)
    element_bytes: int = Field(ge=1, le=LIMIT)
    static_power: Energy


class OwnTileRecord(Record):
    """A tile that is a machine file."""

    arch: EngineRecord
    buffer: str = Field(description="the level that is the tile's buffer")
    clock_mhz: Exact | None = Field(default=None, description="of the grid, where the machine has another")


class OwnTileEngineRecord(TileEngineRecord):
    """One engine of the grid that is a machine file; the other fields follow from it."""

    dataflow: Literal["own"]  # type: ignore[assignment]
    own: OwnTileRecord


class TiledMachineRecord(Record):
    """A tiled machine in full; rates in bytes per cycle, energies in pJ per byte."""

    name: str
    description: str
    width: int = Field(ge=1, le=MAX_SIDE)
    height: int = Field(ge=1, le=MAX_SIDE)
    engine: TileEngineRecord | OwnTileEngineRecord
    clock_mhz: Positive
    topology: Literal["mesh", "torus", "htree"]
    link_rate: Positive
    port_rate: Positive
    dram_rate: Positive
    dram_ports: list[list[int]] = Field(min_length=1)
    dram_port_rate: Positive
    dram_energy: Energy
    hop_energy: Energy
    hop_cycles: int = Field(ge=0, le=LIMIT)

    @classmethod
    def of(cls, machine: TiledMachine) -> TiledMachineRecord:
        """The record of a machine."""
        return cls.model_validate(machine_to_dict(machine))

    def build(self, where: str) -> TiledMachine:
        """The machine; raises ``InputError`` for a DRAM port outside the grid."""
        for port in self.dram_ports:
            if len(port) != 2 or not (0 <= port[0] < self.width and 0 <= port[1] < self.height):
                raise InputError(where, "dram_ports", f"expected positions on the grid, got {port}")
        data = self.model_dump()
        data["engine"] = tile = _tile(self.engine, where)
        if tile.own is not None and float(tile.own.clock_mhz or tile.own.engine.clock_mhz) != self.clock_mhz:
            raise InputError(
                where, "engine.own.clock_mhz", "expected the grid's, where the machine has another"
            )
        data["dram_ports"] = tuple((port[0], port[1]) for port in self.dram_ports)
        return TiledMachine(**data)


def _tile(record: TileEngineRecord, where: str) -> TileEngine:
    """The engine; raises ``InputError`` where a machine file is none of a tile, or makes another one."""
    if not isinstance(record, OwnTileEngineRecord):
        return TileEngine(**record.model_dump())
    try:
        clock = None if record.own.clock_mhz is None else Fraction(record.own.clock_mhz)
        own = own_tile(record.own.arch.build(), record.own.buffer, clock)
    except ValueError as error:
        raise InputError(where, "engine.own", str(error)) from None
    engine = tile_engine(
        own,
        vector_lanes=record.vector_lanes,
        vector_energy=record.vector_energy,
        startup_cycles=record.startup_cycles,
        static_power=record.static_power,
    )
    plain = record.model_dump(exclude={"own"})
    if plain != {name: getattr(engine, name) for name in plain}:
        raise InputError(where, "engine", f"not the tile that {own.engine.name} makes")
    return engine


class TiledProblemRecord(Record):
    """What was asked but for the objective.

    Names and descriptions do not decide anything.
    """

    network: NetworkRecord
    machine: TiledMachineRecord
    batch: int = Field(ge=1, le=LIMIT)
    fuse: bool = Field(description="whether element-wise layers ride on the layer that they follow")
    partial_sums: Literal["chain", "reduction"]

    @classmethod
    def of(cls, problem: TiledProblem) -> TiledProblemRecord:
        """The record of a problem."""
        return cls(
            network=NetworkRecord.of(problem.network),
            machine=TiledMachineRecord.of(problem.machine),
            batch=problem.batch,
            fuse=problem.fuse,
            partial_sums=problem.partial_sums,
        )

    def build(self, objective: str, where: str) -> TiledProblem:
        """The problem; raises ``InputError`` where the record contradicts itself."""
        return TiledProblem(
            self.network.build(f"{where}.network"),
            self.machine.build(f"{where}.machine"),
            tiled_objective(objective),
            batch=self.batch,
            fuse=self.fuse,
            partial_sums=self.partial_sums,
        )
