"""Files of tiled machines: fields in human units, checked one by one.

::

    clock_mhz: 500
    grid: {width: 8, height: 8, topology: mesh, link: 16 B/cycle}
    dram: {bandwidth: 128 GB/s, energy: 56, ports: sides}
    engine:
      array: {rows: 16, columns: 16, dataflow: kc}
      buffer: {size: 128 kB, energy: 2.7}
      mac_energy: 0.3
      vector_lanes: 16
    hop_energy: 4.88

Energies of DRAM, buffer and hops are per byte.  In the place of array, buffer and mac_energy an engine may
have ``arch: my.yaml`` with ``buffer: GLB``, a level of that machine file.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator

from tilewright.foundation.description import FieldError, parse_description
from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.foundation.units import LIMIT, Bandwidth, parse_text, shown
from tilewright.hardware.mapping.schema import (
    BandwidthField,
    Count,
    Energy,
    EnergySection,
    Number,
    Positive,
    Section,
    SizeField,
)
from tilewright.hardware.scheduling.own_engine import MODEL, own_engine, own_tile
from tilewright.hardware.scheduling.tiled.machine import (
    DATAFLOWS,
    TOPOLOGIES,
    TiledMachine,
    TileEngine,
    tile_engine,
)

PLACES = ("sides", "corners", "left")
MAX_SIDE = 64


def _word(known: tuple[str, ...], what: str) -> Any:
    def parse(value: object) -> str:
        if isinstance(value, str) and value in known:
            return value
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        raise ValueError(f"expected {what} among {', '.join(known)}, got {shown(value)}{hint}")

    return PlainValidator(parse)


def _read_and_write(value: object) -> object:
    return value if isinstance(value, dict) else {"read": value, "write": value}


def _parse_ports(value: object) -> str | list[tuple[int, int]]:
    if isinstance(value, str):
        if value in PLACES:
            return value
        raise ValueError(f"expected {', '.join(PLACES)} or a list of [x, y], got {shown(value)}")
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected at least one port: {', '.join(PLACES)} or a list of [x, y]")
    ports: list[tuple[int, int]] = []
    for entry in value:
        pair = entry if isinstance(entry, list) else []
        if len(pair) != 2 or not all(isinstance(coordinate, int) and coordinate >= 0 for coordinate in pair):
            raise ValueError(f"expected positions [x, y] of at least 0, got {shown(entry)}")
        ports.append((pair[0], pair[1]))
    return ports


class GridSection(Section):
    width: Count = Field(description="engines along x")
    height: Count = Field(description="engines along y")
    topology: Annotated[str, _word(TOPOLOGIES, "a topology")] = "mesh"
    link: BandwidthField = Field(description="rate of one directed link, such as 16 B/cycle")
    port: BandwidthField | None = Field(
        default=None, description="rate into and out of one engine (absent: the links')"
    )
    hop_cycles: Number = Fraction(1)


class DramSection(Section):
    bandwidth: BandwidthField = Field(description="reads and writes together, such as 128 GB/s")
    energy: Energy = Field(description="pJ per byte")
    ports: Annotated[str | list[tuple[int, int]], PlainValidator(_parse_ports)] = Field(
        description="sides, corners, left or a list of [x, y]"
    )
    port: BandwidthField | None = Field(default=None, description="rate of one port (absent: the links')")


class ArraySection(Section):
    rows: Count = Field(description="rows of PEs")
    columns: Count = Field(description="columns of PEs")
    dataflow: Annotated[str, _word(DATAFLOWS, "a dataflow")] = Field(description="kc, yx or pairs")
    lanes: Count = 1


def _buffer(value: object) -> object:
    return {"level": value} if isinstance(value, str) else value


class BufferSection(Section):
    size: SizeField | None = Field(default=None, description="the engine's buffer, such as 128 kB")
    energy: Annotated[EnergySection | None, BeforeValidator(_read_and_write)] = Field(
        default=None, description="pJ per byte, one number or {read, write}"
    )
    level: str | None = Field(
        default=None,
        description="with arch, the level of its machine; its name alone in the place of the section",
    )


Arch = Annotated[str, PlainValidator(parse_text)]
CostModel = Annotated[str, _word((MODEL,), "a cost model")]


class EngineSection(Section):
    arch: Arch | None = Field(
        default=None, description="a machine file (from this file's folder) or preset that the tile is"
    )
    cost_model: CostModel | None = Field(
        default=None, description="with arch, hierarchy: take a machine of another cost model under this one"
    )
    array: ArraySection | None = Field(default=None, description="{rows, columns, dataflow}")
    buffer: Annotated[BufferSection | None, BeforeValidator(_buffer)] = Field(
        default=None, description="{size, energy}; with arch, the name of the level that is the tile's buffer"
    )
    mac_energy: Energy | None = Field(default=None, description="pJ per multiply-accumulate")
    register_energy: Energy = Fraction(0)
    vector_lanes: Count = Field(description="element-wise operations per cycle")
    vector_energy: Energy = Fraction(0)
    startup_cycles: Number = Fraction(0)
    element_bytes: Count | None = Field(default=None, description="bytes of one element (absent: 1)")
    static_power: Energy = Fraction(0)


class TiledMachineFile(Section):
    """The whole file; the machine is named after it."""

    description: Annotated[str, PlainValidator(parse_text)] = ""
    clock_mhz: Positive = Field(description="the clock in MHz")
    grid: GridSection = Field(description="{width, height, link}")
    dram: DramSection = Field(description="{bandwidth, energy, ports}")
    engine: EngineSection = Field(description="{array, buffer, mac_energy, vector_lanes}")
    hop_energy: Energy = Field(description="pJ per byte and link")


def parse_tiled_machine(text: str, where: str, name: str, folder: Path | None = None) -> TiledMachine:
    """The machine that a file's text describes.

    Parameters
    ----------
    text : YAML
    where : what errors call the file
    name : the machine's name
    folder : from which a machine file is sought

    Raises
    ------
    InputError : with line and field, for text that describes none
    """
    return parse_description(text, where, TiledMachineFile, lambda file: _build(file, name, folder))


def port_positions(
    places: str | list[tuple[int, int]], width: int, height: int
) -> tuple[tuple[int, int], ...]:
    """Positions of DRAM ports: both ends of every row, the four corners, the left ends, or as listed."""
    if places == "corners":
        positions = [(x, y) for y in (0, height - 1) for x in (0, width - 1)]
    elif isinstance(places, str):
        positions = [(x, y) for y in range(height) for x in ((0, width - 1) if places == "sides" else (0,))]
    else:
        positions = places
    return tuple(dict.fromkeys(positions))


def _build(file: TiledMachineFile, name: str, folder: Path | None = None) -> TiledMachine:
    grid, engine, dram = file.grid, file.engine, file.dram
    for field in ("width", "height"):
        if getattr(grid, field) > MAX_SIDE:
            raise FieldError(("grid", field), f"expected at most {MAX_SIDE}, got {getattr(grid, field)}")
    ports = port_positions(dram.ports, grid.width, grid.height)
    for x, y in ports:
        if x >= grid.width or y >= grid.height:
            raise FieldError(("dram", "ports"), f"port [{x}, {y}] lies outside the grid")
    for place, cycles in (
        (("grid", "hop_cycles"), grid.hop_cycles),
        (("engine", "startup_cycles"), engine.startup_cycles),
    ):
        if cycles.denominator != 1:
            raise FieldError(place, "expected a whole number of cycles")
    clock = file.clock_mhz
    link = _rate(grid.link, clock, "grid", "link")
    port = link if grid.port is None else _rate(grid.port, clock, "grid", "port")
    dram_port = link if dram.port is None else _rate(dram.port, clock, "dram", "port")
    return TiledMachine(
        name=name,
        width=grid.width,
        height=grid.height,
        engine=_tile(engine) if engine.arch is None else _own_tile(engine, engine.arch, clock, folder),
        clock_mhz=float(clock),
        topology=grid.topology,
        link_rate=link,
        port_rate=port,
        dram_rate=_rate(dram.bandwidth, clock, "dram", "bandwidth"),
        dram_ports=ports,
        dram_port_rate=dram_port,
        dram_energy=float(dram.energy),
        hop_energy=float(file.hop_energy),
        hop_cycles=int(grid.hop_cycles),
        description=file.description,
    )


def _rate(bandwidth: Bandwidth, clock: Fraction, *place: str) -> float:
    """Bytes per cycle of a field."""
    rate = bandwidth.elements_per_cycle(8, clock)
    if not Fraction(1, LIMIT) <= rate <= LIMIT:
        raise FieldError(place, f"expected above 0 and at most {LIMIT:,} B/cycle, got {float(rate):.6g}")
    return float(rate)


def _tile(engine: EngineSection) -> TileEngine:
    """A tile of one of the three kinds."""
    array, buffer = engine.array, engine.buffer
    for field in ("array", "buffer", "mac_energy"):
        if getattr(engine, field) is None:
            raise FieldError(("engine", field), "missing, expected it, or arch with a machine file")
    assert array is not None
    assert buffer is not None
    assert engine.mac_energy is not None
    for field, expected in (("size", "a size such as 128 kB"), ("energy", "pJ per byte")):
        if getattr(buffer, field) is None:
            raise FieldError(("engine", "buffer", field), f"missing, expected {expected}")
    assert buffer.size is not None
    assert buffer.energy is not None
    if engine.cost_model is not None:
        raise FieldError(("engine", "cost_model"), "expected none without arch")
    if array.lanes > 1 and array.dataflow != "pairs":
        raise FieldError(("engine", "array", "lanes"), "expected 1 unless the dataflow is pairs")
    try:
        size = buffer.size.elements(8)
    except ValueError as error:
        raise FieldError(("engine", "buffer", "size"), str(error)) from None
    if size > LIMIT:
        raise FieldError(("engine", "buffer", "size"), f"expected at most {LIMIT:,} bytes, got {size:,}")
    return TileEngine(
        rows=array.rows,
        columns=array.columns,
        dataflow=array.dataflow,
        lanes=array.lanes,
        vector_lanes=engine.vector_lanes,
        startup_cycles=int(engine.startup_cycles),
        element_bytes=engine.element_bytes or 1,
        buffer_bytes=size,
        mac_energy=float(engine.mac_energy),
        vector_energy=float(engine.vector_energy),
        buffer_read_energy=float(buffer.energy.read),
        buffer_write_energy=float(buffer.energy.write),
        register_energy=float(engine.register_energy),
        static_power=float(engine.static_power),
    )


def _own_tile(engine: EngineSection, arch: str, clock: Fraction, folder: Path | None) -> TileEngine:
    """A tile that is a machine file."""
    for field in ("array", "mac_energy", "element_bytes"):
        if getattr(engine, field) is not None:
            raise FieldError(("engine", field), "expected none beside arch, whose machine has its own")
    if engine.register_energy:
        raise FieldError(
            ("engine", "register_energy"), "expected none beside arch, whose machine has its own"
        )
    try:
        known = own_engine(arch, folder, engine.cost_model)
    except (InputError, ValueError) as error:
        raise FieldError(("engine", "arch"), str(error)) from None
    if engine.static_power and known.leak:
        raise FieldError(("engine", "static_power"), "expected none beside arch, whose machine has its own")
    try:
        return tile_engine(
            own_tile(known, (engine.buffer and engine.buffer.level) or "", clock),
            vector_lanes=engine.vector_lanes,
            vector_energy=float(engine.vector_energy),
            startup_cycles=int(engine.startup_cycles),
            static_power=float(engine.static_power),
        )
    except ValueError as error:
        raise FieldError(("engine", "buffer"), str(error)) from None
