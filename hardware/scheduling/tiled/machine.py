"""The tiled machine: a grid of equal engines with a buffer each, a network between them, and ports to DRAM.

Positions are (x, y); engine ``y * width + x`` sits there.  Rates are bytes per cycle, energies pJ.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from tilewright.foundation.units import exact
from tilewright.hardware.mapping.identity import engine_to_dict
from tilewright.hardware.scheduling.own_engine import OWN, OwnTile

DATAFLOWS = ("kc", "yx", "pairs")
TOPOLOGIES = ("mesh", "torus", "htree")


@dataclass(frozen=True, slots=True)
class TileEngine:
    """One engine of the grid.

    Parameters
    ----------
    rows, columns : the PE array
    dataflow : ``kc``: input channels along rows, output channels along columns (KC-partition, NVDLA);
        ``yx``: output rows along rows, output columns along columns (YX-partition, ShiDianNao);
        ``pairs``: rows x columns groups of ``lanes`` x ``lanes`` multipliers that spread input by output
        channels inside, and over the groups the best pair of dimensions per task (SET's tile)
    lanes : multipliers along either channel inside a PE; 1 but for ``pairs``
    vector_lanes : element-wise operations per cycle
    startup_cycles : cycles of every task before its first operation
    element_bytes : bytes of one tensor element
    buffer_bytes : the engine's buffer
    mac_energy, vector_energy : pJ per operation
    buffer_read_energy, buffer_write_energy : pJ per byte
    register_energy : pJ per byte read from or written to the registers of the PEs
    static_power : pJ per cycle, busy or not
    own : the machine file that the engine is, whose dataflow is ``own``; ``None`` of the other tiles
    prices : with ``own``, says which mapping each task has; no part of the machine's content
    """

    rows: int
    columns: int
    dataflow: str
    vector_lanes: int
    buffer_bytes: int
    mac_energy: float
    buffer_read_energy: float
    buffer_write_energy: float
    register_energy: float = 0.0
    vector_energy: float = 0.0
    lanes: int = 1
    startup_cycles: int = 0
    element_bytes: int = 1
    static_power: float = 0.0
    own: OwnTile | None = None
    prices: Any = field(default=None, repr=False)

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.columns * self.lanes * self.lanes


@dataclass(frozen=True)
class TiledMachine:
    """A grid of engines.

    Parameters
    ----------
    width, height : engines along x and y
    engine : what every engine is
    clock_mhz : one clock for engines and network
    topology : ``mesh`` (XY routing), ``torus`` (XY routing the shorter way round), ``htree``
    link_rate : bytes per cycle of every directed link between neighbours
    port_rate : bytes per cycle into, and out of, every engine
    dram_rate : bytes per cycle of the DRAM, reads and writes together
    dram_ports : positions of the routers that reach DRAM
    dram_port_rate : bytes per cycle and direction of one of those
    dram_energy : pJ per byte
    hop_energy : pJ per byte and link passed
    hop_cycles : cycles from one router to the next
    """

    name: str
    width: int
    height: int
    engine: TileEngine
    clock_mhz: float
    topology: str
    link_rate: float
    port_rate: float
    dram_rate: float
    dram_ports: tuple[tuple[int, int], ...]
    dram_port_rate: float
    dram_energy: float
    hop_energy: float
    hop_cycles: int = 1
    description: str = ""

    @property
    def engines(self) -> int:
        return self.width * self.height

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates per cycle of all engines."""
        return self.engines * self.engine.macs_per_cycle

    @property
    def on_chip_bytes(self) -> int:
        return self.engines * self.engine.buffer_bytes

    def position(self, engine: int) -> tuple[int, int]:
        """(x, y) of an engine."""
        return engine % self.width, engine // self.width

    def in_elements(self) -> TiledMachine:
        """The same machine with an element as its byte: rates and buffers hold fewer, each costs more."""
        size, engine = self.engine.element_bytes, self.engine
        if size == 1:
            return self
        engine = replace(
            engine,
            element_bytes=1,
            buffer_bytes=engine.buffer_bytes // size,
            buffer_read_energy=engine.buffer_read_energy * size,
            buffer_write_energy=engine.buffer_write_energy * size,
            register_energy=engine.register_energy * size,
        )
        rates = ("link_rate", "port_rate", "dram_rate", "dram_port_rate")
        return replace(
            self,
            engine=engine,
            dram_energy=self.dram_energy * size,
            hop_energy=self.hop_energy * size,
            **{rate: getattr(self, rate) / size for rate in rates},
        )

    def changed(self, **fields: Any) -> TiledMachine:
        """The same machine with other fields; those of the engine are given as ``engine``."""
        return replace(self, **fields)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything but name and description."""
        data = machine_to_dict(self)
        content = {key: value for key, value in data.items() if key not in ("name", "description")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def tile_engine(
    own: OwnTile,
    *,
    vector_lanes: int,
    vector_energy: float = 0.0,
    startup_cycles: int = 0,
    static_power: float = 0.0,
) -> TileEngine:
    """The tile that a machine file is.

    Parameters
    ----------
    own : the machine file and its buffer
    vector_lanes, vector_energy, startup_cycles : what the file does not say, as of `TileEngine`
    static_power : the same, where the machine itself has none
    """
    engine, level = own.engine, own.engine.level(own.level)
    size = engine.element_bits // 8
    axes = [axis for known in engine.levels if known.fanout is not None for axis in known.fanout.axes]
    columns = math.prod(axis.size for axis in axes if axis.carries is not None and "K" in axis.carries)
    return TileEngine(
        rows=engine.instances // columns,
        columns=columns,
        dataflow=OWN,
        vector_lanes=vector_lanes,
        buffer_bytes=own.buffer_bytes,
        mac_energy=float(engine.mac_energy),
        buffer_read_energy=float(level.read_energy / size),
        buffer_write_energy=float(level.write_energy / size),
        vector_energy=vector_energy,
        startup_cycles=startup_cycles,
        element_bytes=size,
        static_power=float(own.static_power) or static_power,
        own=own,
    )


def machine_to_dict(machine: TiledMachine) -> dict[str, Any]:
    """Every field as JSON-ready data."""
    engine = machine.engine
    plain = replace(machine, engine=replace(engine, own=None, prices=None))
    data = asdict(plain)
    for absent in ("own", "prices"):  # so that hashes of other machines stay
        del data["engine"][absent]
    if engine.own is not None:
        own, clock = engine.own, engine.own.clock_mhz
        data["engine"]["own"] = {
            "arch": engine_to_dict(own.engine),
            "buffer": own.level,
            **({} if clock is None else {"clock_mhz": exact(clock)}),
        }
    data["dram_ports"] = [list(port) for port in machine.dram_ports]
    return data
