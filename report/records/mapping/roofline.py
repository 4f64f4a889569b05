"""The roofline: what of a machine limits a layer, its multipliers or its outermost bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.breakdown import bits_of
from tilewright.report.records.mapping.document import LayerRecord, MetricsRecord, ResultDocument


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One mapped layer below the roof.

    Parameters
    ----------
    name, count : of the layer
    intensity : multiply-accumulates per byte that crosses the outermost level's ports
    macs_per_cycle : what the mapping does
    roof : most of them at this intensity
    limit : the outermost level's name, or ``PEs``: what the roof is there
    """

    name: str
    count: int
    intensity: float
    macs_per_cycle: float
    roof: float
    limit: str


def roofline(document: ResultDocument, engine: Engine) -> list[RooflinePoint]:
    """Every layer that multiplies and has a mapping."""
    rate, points = dram_rate(engine), []
    for layer in document.layers:
        metrics = layer.metrics
        traffic = Fraction(0) if metrics is None else dram_bytes(layer, metrics, engine)
        if metrics is None or not metrics.macs or not traffic:
            continue
        intensity = metrics.macs / traffic
        slope = None if rate is None else intensity * rate
        starved = slope is not None and slope < engine.instances
        roof = float(slope) if starved and slope is not None else float(engine.instances)
        limit = engine.levels[0].name if starved else "PEs"
        points.append(
            RooflinePoint(
                layer.name, layer.count, float(intensity), metrics.macs / metrics.cycles, roof, limit
            )
        )
    return points


def dram_bytes(layer: LayerRecord, metrics: MetricsRecord, engine: Engine) -> Fraction:
    """Bytes that cross the ports of the outermost level."""
    outermost = engine.levels[0].name
    operator = layer.operator.build(layer.name)
    moved = (
        (row.reads + row.fills + row.updates) * bits_of(engine, operator, row.level, row.tensor)
        for row in metrics.accesses
        if row.level == outermost
    )
    return Fraction(sum(moved), 8)


def dram_rate(engine: Engine) -> Fraction | None:
    """Most bytes per cycle that the outermost level reads and writes; ``None`` where it is no limit."""
    if engine.dma is not None and engine.dma.per_byte:
        return 1 / (engine.dma.per_byte * engine.dma.clock_ratio)
    level = engine.levels[0]
    if level.shared_bandwidth is not None:
        return level.shared_bandwidth * engine.element_bytes
    if level.read_bandwidth is None or level.write_bandwidth is None:
        return None
    return (level.read_bandwidth + level.write_bandwidth) * engine.element_bytes
