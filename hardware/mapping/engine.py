"""An engine: memory levels from DRAM to the register file, with PE arrays fanning out between them.

Sizes are in elements, energies in pJ per element, bandwidths in elements of ``element_bits`` bits per cycle,
exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.hardware.mapping.timing import PLAIN, Timing
from tilewright.workloads.mapping.operator import Role

PE = "PE"
"""How components by name call the processing elements."""

COMPUTING = "MAC"
"""The component of energy of the PEs' operations."""

LEAKAGE = "leakage"
"""The component of what is spent in every cycle, whatever happens in it."""


@dataclass(frozen=True, slots=True)
class ArrayAxis:
    """One axis of a PE array.

    Parameters
    ----------
    name : such as ``x``; mappings place spatial loops on it by this name
    size : instances along the axis
    carries : convolution dimensions (``N G K C P Q R S``) that may be spread along it; ``None`` for any
    """

    name: str
    size: int
    carries: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Fanout:
    """The array of instances of the next inner level, and the network that feeds it.

    Parameters
    ----------
    axes : the array's axes
    energy : pJ per element delivered to one instance (or collected from one)
    multicast : whether one read of the outer level serves all instances that need the element
    reduction : whether partial sums of several instances are added on their way to the outer level
    sharing : whether the buffers of the next inner level keep what several of them read once, and pass it on
        to each other
    hop_energy : pJ per element that a buffer passes on to its neighbour
    """

    axes: tuple[ArrayAxis, ...]
    energy: Fraction = Fraction(0)
    multicast: bool = True
    reduction: bool = True
    sharing: bool = False
    hop_energy: Fraction = Fraction(0)

    @property
    def instances(self) -> int:
        return math.prod(axis.size for axis in self.axes)


@dataclass(frozen=True, slots=True)
class MemoryLevel:
    """One level of storage.

    Parameters
    ----------
    name : such as ``DRAM``
    capacity : elements (of `Engine.capacity_element_bits`) that a tile may occupy in one instance (one of the
        two buffers where the level is double-buffered); ``None`` where the level is never the limit
    partitions : elements reserved for one role each, of its own width; roles that are absent share
        ``capacity``
    bank : elements (of `Engine.capacity_element_bits`) per bank, where every tensor is rounded up to whole
        banks
    read_energy, write_energy : pJ per element
    read_bandwidth, write_bandwidth : elements of ``element_bits`` bits per cycle and instance; ``None`` where
        never the limit
    double_buffered : whether filling this level overlaps with work on its other buffer
    keeps : roles that may be stored here
    may_bypass : roles among ``keeps`` that a mapping may choose not to store here
    sliding_window : whether the overlap of consecutive tiles stays in place when a window slides
    fanout : the array of instances of the next inner level; ``None`` for a single instance
    shared_bandwidth : of a port that reads and writes share, as the other bandwidths
    read_energies, write_energies : pJ per element of roles whose elements cost another energy
    widths : bits of elements here, for roles that have other than ``element_bits``
    counted_bits : of the elements in which ``capacity`` and ``bank`` count, on a level that was made from one
        with more roles; ``None`` for what the level's own roles say
    timing : what transfers cost beside bandwidth
    """

    name: str
    capacity: int | None
    read_energy: Fraction
    write_energy: Fraction
    partitions: MappingABC[Role, int] = field(default_factory=dict)
    bank: int | None = None
    read_bandwidth: Fraction | None = None
    write_bandwidth: Fraction | None = None
    double_buffered: bool = False
    keeps: frozenset[Role] = frozenset(Role)
    may_bypass: frozenset[Role] = frozenset()
    sliding_window: bool = False
    fanout: Fanout | None = None
    shared_bandwidth: Fraction | None = None
    read_energies: MappingABC[Role, Fraction] = field(default_factory=dict)
    write_energies: MappingABC[Role, Fraction] = field(default_factory=dict)
    widths: MappingABC[Role, int] = field(default_factory=dict)
    counted_bits: int | None = None
    timing: Timing = PLAIN

    def read_energy_of(self, role: Role) -> Fraction:
        """pJ per element of a role read."""
        return self.read_energies.get(role, self.read_energy)

    def write_energy_of(self, role: Role) -> Fraction:
        """pJ per element of a role written."""
        return self.write_energies.get(role, self.write_energy)

    @property
    def energies(self) -> tuple[Fraction, ...]:
        """All unit energies: of roles without one of their own, then of the others in their sequence."""
        own = (
            energies[role]
            for energies in (self.read_energies, self.write_energies)
            for role in sorted(energies)
        )
        return (self.read_energy, self.write_energy, *own)

    @property
    def has_bandwidth(self) -> bool:
        """Whether the bandwidth of any port is a limit."""
        rates = (self.read_bandwidth, self.write_bandwidth, self.shared_bandwidth)
        return any(rate is not None for rate in rates)

    @property
    def particulars(self) -> dict[str, bool]:
        """What sets roles or ports apart, by the field of a machine file: whether the level has it."""
        return {
            "widths": bool(self.widths),
            "energy_by_role": bool(self.read_energies or self.write_energies),
            "bandwidth.shared": self.shared_bandwidth is not None,
        }


@dataclass(frozen=True, slots=True)
class Dma:
    """The engine that moves data between DRAM and the next level (dMazeRunner, section 4.3.3).

    One invocation for ``b`` bytes takes ``ceil((startup + per_byte * b) * clock_ratio)`` engine cycles.

    Parameters
    ----------
    startup : cycles of the DMA clock per invocation
    per_byte : cycles of the DMA clock per byte
    clock_ratio : engine clock over DMA clock
    """

    startup: Fraction
    per_byte: Fraction
    clock_ratio: Fraction


@dataclass(frozen=True)
class Engine:
    """A spatial accelerator.

    Parameters
    ----------
    name : preset name or file stem
    cost_model : the cost model that this machine asks for (``hierarchy`` or ``dmazerunner``)
    element_bits : bits of one tensor element, where a level has no other width for its role
    mac_energy : pJ per multiply-accumulate
    clock_mhz : engine clock, for reporting times
    levels : memory levels, outermost first; the outermost holds every tensor
    dma : present where the cost model needs it
    leakage : pJ per cycle that all instances of a component take, idle ones too, by the name of a level or
        ``PE``; only those that leak
    area : mm2 of all instances, likewise; only those whose area is stated
    starts : of an engine as one turn of a fused layer sees it, per role that starts on chip the level that
        the outermost one stands for; elements of such a role go through that level's ports
    """

    name: str
    cost_model: str
    element_bits: int
    mac_energy: Fraction
    clock_mhz: Fraction
    levels: tuple[MemoryLevel, ...]
    dma: Dma | None = None
    description: str = ""
    leakage: MappingABC[str, Fraction] = field(default_factory=dict)
    area: MappingABC[str, Fraction] = field(default_factory=dict)
    starts: MappingABC[Role, int] = field(default_factory=dict)

    @property
    def leak(self) -> Fraction:
        """pJ per cycle of all components together."""
        return sum(self.leakage.values(), Fraction(0))

    @property
    def static_power(self) -> Fraction:
        """W of all components together."""
        return self.leak * self.clock_mhz / 10**6

    @property
    def element_bytes(self) -> Fraction:
        return Fraction(self.element_bits, 8)

    @property
    def instances(self) -> int:
        """Processing elements: the product of all fan-outs."""
        return math.prod(level.fanout.instances for level in self.levels if level.fanout is not None)

    def store_behind(self, port: int, role: Role) -> int | None:
        """The store of a role whose elements go through a level's ports; ``None`` where there is none."""
        start = self.starts.get(role, 0)
        return 0 if port == start else port if port > start else None

    def width(self, level: MemoryLevel, role: Role) -> int:
        """Bits of one element of a role in a level."""
        return level.widths.get(role, self.element_bits)

    def capacity_element_bits(self, level: MemoryLevel) -> int:
        """Bits of the elements that a level's capacity is counted in.

        The width of all roles that share it, where they have one, else ``element_bits``.
        """
        if level.counted_bits is not None:
            return level.counted_bits
        widths = {self.width(level, role) for role in level.keeps - level.partitions.keys()}
        return widths.pop() if len(widths) == 1 else self.element_bits

    def usable_bits(self, level: MemoryLevel) -> int | None:
        """Bits that tiles of all roles together may occupy in one instance; ``None`` for no limit."""
        if level.capacity is None:
            return None
        if level.partitions.keys() == level.keeps:
            return sum(size * self.width(level, role) for role, size in level.partitions.items())
        return level.capacity * self.capacity_element_bits(level)

    def level(self, name: str) -> MemoryLevel:
        """The level of that name; raises ``KeyError`` with the known names."""
        for level in self.levels:
            if level.name == name:
                return level
        raise KeyError(f"no level {name!r}, expected one of {[level.name for level in self.levels]}")
