"""What of a machine its author may have meant otherwise: legal, but unusual, a sentence each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from tilewright.foundation.units import exact
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role


def unusual(engine: Engine) -> tuple[str, ...]:
    """Everything about a machine that deserves a second look, outermost level first; empty for most machines.

    Nothing is changed: a machine means what its file says.
    """
    if engine.cost_model == "dmazerunner":  # its formulas, not ports, say how fast levels are
        return (*_single(engine), *_unused(engine), *_rising(engine))
    looks = (_single, _plain_bus, _unused, _rising, _widths, _starved)
    return tuple(sentence for look in looks for sentence in look(engine))


def assumptions(engine: Engine) -> tuple[str, ...]:
    """What a file leaves open and results rest on, a line each; results have it among their notes."""
    return tuple(_single(engine))


def _single(engine: Engine) -> Iterator[str]:
    if not any(level.fanout is not None for level in engine.levels):
        yield f"{engine.name}: no level has a fanout, so this is taken for a machine with a single PE"


def _plain_bus(engine: Engine) -> Iterator[str]:
    """The outermost level reads and writes at the same rate at once, which a single bus cannot."""
    outermost = engine.levels[0]
    rate = outermost.read_bandwidth
    if rate is not None and rate == outermost.write_bandwidth:
        both, alone = _rate(2 * rate, engine), _rate(rate, engine)
        yield (
            f"{outermost.name}: bandwidth counts for reads and for writes at once, {both} in all; "
            f"one bus for both is written bandwidth: {{shared: {alone}}}"
        )


def _unused(engine: Engine) -> Iterator[str]:
    """A level that nothing may use: it cannot hold one element of each tensor that it must store."""
    for level in engine.levels[1:]:
        needed, own = level.keeps - level.may_bypass - level.partitions.keys(), level.capacity
        if own is not None and level.partitions.keys() != level.keeps and own < len(needed):
            yield (
                f"{level.name}: must store {', '.join(sorted(needed))} and holds {own} "
                f"element{'' if own == 1 else 's'}, so no mapping of a layer with these tensors fits"
            )


def _rising(engine: Engine) -> Iterator[str]:
    """A tensor that costs more inside than outside."""
    for role in Role:
        chain = [level for level in engine.levels if role in level.keeps]
        for outer, inner in pairwise(chain):
            before, behind = outer.read_energy_of(role), inner.read_energy_of(role)
            if behind > before:
                yield (
                    f"{inner.name}: reading {role} costs {exact(behind)} pJ, "
                    f"more than the {exact(before)} pJ of {outer.name} outside of it"
                )


def _widths(engine: Engine) -> Iterator[str]:
    """Elements of another width that move faster but cost the same energy."""
    for level in engine.levels:
        alike = [
            role
            for role in Role
            if role in level.keeps
            and role in level.widths
            and level.read_energy_of(role) == level.read_energy
            and level.write_energy_of(role) == level.write_energy
            and (level.read_energy or level.write_energy)
        ]
        if alike:
            named = ", ".join(f"{role} of {level.widths[role]} bits" for role in alike)
            yield (
                f"{level.name}: {named} change capacity and time, but cost the energy of "
                f"{engine.element_bits} bits; word_bits or energy by role makes energy follow"
            )


def _starved(engine: Engine) -> Iterator[str]:
    """A level through which no matrix product can feed the array.

    All traffic between a level that stores every tensor and the memories below, S elements in all, is at
    least 2 M N K / sqrt(S) - 2 S elements in a product of M x N x K (Smith et al., "Pushing the bounds for
    matrix-matrix multiplication", 2019, theorem 1): in the long run at most sqrt(S) / 2 products per element.
    """
    for index, level in enumerate(engine.levels):
        rate = _traffic(level)
        if rate is None or level.keeps - level.may_bypass != frozenset(Role):
            continue
        below = _elements_below(engine, index)
        copies = math.prod(
            outer.fanout.instances for outer in engine.levels[:index] if outer.fanout is not None
        )
        if below is None or not below:
            continue
        most = float(rate) * copies * math.sqrt(below) / 2
        if most < engine.instances:
            what = "peak lies beyond this bus" if index == 0 else "array cannot be fed"
            given = f"{_rate(rate, engine)} and {below:,} elements below"
            yield (
                f"{level.name}: the {what}: {given} allow {most:,.0f} of {engine.instances:,} "
                "multiply-accumulates per cycle of a matrix product, however large"
            )


def _traffic(level: MemoryLevel) -> Fraction | None:
    """Elements per cycle to and from one instance; ``None`` where nothing limits them."""
    if level.shared_bandwidth is not None:
        return level.shared_bandwidth
    if level.read_bandwidth is None or level.write_bandwidth is None:
        return None
    return level.read_bandwidth + level.write_bandwidth


def _elements_below(engine: Engine, index: int) -> int | None:
    """Elements that all memories below a level hold together, both buffers; ``None`` without a limit."""
    total, instances = 0, 1
    for outer, level in enumerate(engine.levels):
        if outer > index:
            if level.capacity is None:
                return None
            total += instances * level.capacity * (2 if level.double_buffered else 1)
        if level.fanout is not None:
            instances *= level.fanout.instances
    return total


def _rate(rate: Fraction, engine: Engine) -> str:
    """Bytes per second of elements per cycle."""
    per_second = float(rate * engine.element_bytes * engine.clock_mhz) * 1e6
    for unit, size in (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6)):
        if per_second >= size:
            return f"{per_second / size:.6g} {unit}"
    return f"{per_second:.6g} B/s"
