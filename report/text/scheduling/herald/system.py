"""Systems as tables."""

from __future__ import annotations

from rich.console import RenderableType

from tilewright.foundation.units import exact
from tilewright.hardware.scheduling.herald.system import System
from tilewright.report.text.quantities import bytes_text, count_text
from tilewright.report.text.tables import head_text, plain_table


def system_views(system: System) -> list[RenderableType]:
    """What the sub-accelerators share, and what each has."""
    title = head_text(system.name, *([system.description] if system.description else []))
    shared = plain_table([("", "left"), ("", "right")])
    shared.show_header = False
    shared.add_row("PEs", count_text(system.pes))
    shared.add_row("global memory", bytes_text(system.memory_bytes, 8))
    shared.add_row("clock", f"{exact(system.clock_mhz)} MHz")
    shared.add_row("DRAM", f"{exact(system.dram_bandwidth)} B/cycle")
    shared.add_row("first weights are", "fetched ahead" if system.prefetch else "waited for")
    shared.add_row("results", "stay while there is room" if system.keep_activations else "go to DRAM")
    if system.context_cycles or system.context_energy:
        change = f"{system.context_cycles} cycles, {exact(system.context_energy)} pJ"
        shared.add_row("context change", change)
    table = plain_table(
        [
            ("sub-accelerator", "left"),
            ("dataflow", "left"),
            ("PEs", "right"),
            ("array", "right"),
            ("B/cycle", "right"),
            ("memory share", "right"),
        ]
    )
    for sub in system.subs:
        arrays = ", ".join("x".join(map(str, flow.array(sub.pes))) for flow in sub.dataflows)
        if sub.own is not None:
            fans = [level.fanout for level in sub.own.engine.levels if level.fanout is not None]
            arrays = " of ".join("x".join(str(axis.size) for axis in fan.axes) for fan in fans) or "1"
        table.add_row(
            sub.name, sub.flow_names, count_text(sub.pes), arrays, exact(sub.bandwidth), exact(sub.share)
        )
    return [title, "", shared, "", table]
