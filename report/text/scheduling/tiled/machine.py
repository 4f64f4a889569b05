"""Tiled machines as tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.report.text.quantities import bytes_text, count_text
from tilewright.report.text.scheduling.claims import figures_table
from tilewright.report.text.tables import head_text

_PORT, _PLAIN = "D", "o"


def machine_views(machine: TiledMachine) -> list[RenderableType]:
    """Grid, network, DRAM and engine in figures, and where the DRAM's ports are."""
    engine, clock = machine.engine, machine.clock_mhz
    title = head_text(machine.name, *([machine.description] if machine.description else []))
    shared = figures_table()
    shared.add_row("engines", f"{machine.width} x {machine.height} = {machine.engines}")
    shared.add_row("clock", f"{clock:g} MHz")
    shared.add_row("MACs per cycle", count_text(machine.macs_per_cycle))
    shared.add_row("buffers", bytes_text(machine.on_chip_bytes, 8))
    shared.add_row("topology", machine.topology)
    shared.add_row("link", _rate(machine.link_rate, clock))
    shared.add_row("engine's port", _rate(machine.port_rate, clock))
    shared.add_row("DRAM", _rate(machine.dram_rate, clock))
    shared.add_row("DRAM port", f"{_rate(machine.dram_port_rate, clock)}, {len(machine.dram_ports)} of them")
    shared.add_row("DRAM energy", f"{machine.dram_energy:g} pJ/B")
    shared.add_row("hop", f"{machine.hop_energy:g} pJ/B, {machine.hop_cycles} cycles")
    own = figures_table()
    lanes = f", {engine.lanes} x {engine.lanes} lanes" if engine.lanes > 1 else ""
    if engine.own is None:
        own.add_row("array", f"{engine.rows} x {engine.columns} PEs{lanes}, dataflow {engine.dataflow}")
    else:
        file = engine.own
        own.add_row("machine", f"{file.engine.name}, {file.engine.instances} PEs, buffer {file.level}")
    own.add_row("buffer", bytes_text(engine.buffer_bytes, 8))
    own.add_row("buffer read, write", f"{engine.buffer_read_energy:g}, {engine.buffer_write_energy:g} pJ/B")
    own.add_row("MAC, registers", f"{engine.mac_energy:g} pJ, {engine.register_energy:g} pJ/B")
    own.add_row("vector unit", f"{engine.vector_lanes} per cycle, {engine.vector_energy:g} pJ")
    own.add_row("element", f"{engine.element_bytes} B")
    if engine.startup_cycles or engine.static_power:
        own.add_row("start, static", f"{engine.startup_cycles} cycles, {engine.static_power:g} pJ/cycle")
    ports = {*machine.dram_ports}
    rows = [
        Text("  " + " ".join(_PORT if (x, y) in ports else _PLAIN for x in range(machine.width)))
        for y in range(machine.height)
    ]
    legend = Text(f"  {_PORT} an engine whose router reaches DRAM, {_PLAIN} any other", "dim")
    return [title, "", shared, "", Text("each engine", "bold"), own, "", *rows, legend]


def _rate(rate: float, clock_mhz: float) -> str:
    """Bytes per cycle, and per second."""
    return f"{rate:g} B/cycle ({rate * clock_mhz / 1000:.4g} GB/s)"
