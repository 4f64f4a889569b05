"""Dataflow styles: what one sub-accelerator spreads over its PEs and keeps in place, whatever its size.

A style is a rule that makes a three-level engine (DRAM, global memory, PEs) for any number of PEs and any
bandwidth, and what it fixes of the mappings that it runs.  The rules follow MAESTRO's directives for
the three styles (its public release, data/mapping), which Herald uses: one filter tap row or window per
PE, all other loops outside.  Sources of the figures stand beside them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Operator, Role

ELEMENT_BITS = 8  # assumed: 8-bit inference, so that MAESTRO's elements per cycle are GB/s at 1 GHz
CLOCK_MHZ = Fraction(1000)
DRAM, MEMORY, PE = "DRAM", "GLB", "PE"

# Energies relative to one MAC as in the presets (ISCA'16, table IV): DRAM, buffer, network, register file.
_DRAM_ENERGY, _MEMORY_ENERGY, _NOC_ENERGY, _PE_ENERGY, _MAC_ENERGY = map(Fraction, (200, 6, 2, 1, 1))
_PE_ELEMENTS = 512  # ISCA'16: register file of 0.5 kB per PE, here in each of two buffers
_WHOLE = "QRS"  # a tile in the global memory has whole output rows and filters: DRAM moves long bursts
_CLUSTER = 64  # MAESTRO's directives for the NVDLA style: clusters of 64 PEs share an adder tree


@dataclass(frozen=True, slots=True)
class Fixed:
    """One thing that a style fixes at a memory level.

    Parameters
    ----------
    what : ``no loop``: a dimension's loop there has one iteration; ``one held``: the level holds one
        iteration of a dimension at a time; ``stationary``: the level's loops keep a tensor in place
    name : of the dimension or tensor
    """

    what: Literal["no loop", "one held", "stationary"]
    name: str
    level: str


@dataclass(frozen=True, slots=True)
class _Axis:
    """An array axis before its size is known."""

    name: str
    carries: str


@dataclass(frozen=True, slots=True)
class DataflowStyle:
    """A dataflow style.

    Parameters
    ----------
    name, label, about : for command lines, tables, and readers
    axes : the array's two axes and the convolution dimensions that each may carry
    inner_cluster : size of the second axis where it is fixed; otherwise the array is as square as possible
    reduction : whether partial sums are added across PEs
    window : convolution dimensions that a PE runs through by itself; of all others it sees one at a time
    stationary : the tensor that the loops between global memory and PEs keep in place
    """

    name: str
    label: str
    about: str
    axes: tuple[_Axis, _Axis]
    inner_cluster: int | None
    reduction: bool
    window: str
    stationary: Role

    def array(self, pes: int) -> tuple[int, int]:
        """Sizes of the two axes; their product is the number of PEs."""
        if self.inner_cluster is not None:
            inner = max(d for d in range(1, min(self.inner_cluster, pes) + 1) if pes % d == 0)
            return pes // inner, inner
        first = max(d for d in range(1, math.isqrt(pes) + 1) if pes % d == 0)
        return first, pes // first

    def fixes(self, operator: Operator) -> tuple[Fixed, ...]:
        """What the style leaves no choice about, in an operator's names."""
        rules: list[Fixed] = []
        for dimension in operator.dimensions:
            if dimension.like in _WHOLE:
                rules.append(Fixed("no loop", dimension.name, DRAM))
            if dimension.like in self.window:
                rules.append(Fixed("no loop", dimension.name, MEMORY))
            else:
                rules.append(Fixed("one held", dimension.name, PE))
        kept = next((tensor for tensor in operator.tensors if tensor.role is self.stationary), None)
        return (*rules, Fixed("stationary", kept.name, MEMORY)) if kept is not None else tuple(rules)

    def engine(self, pes: int, bandwidth: Fraction, memory: int) -> Engine:
        """The engine of one sub-accelerator.

        Parameters
        ----------
        bandwidth : bytes per cycle between global memory and PEs
        memory : bytes of the global memory that a layer's tiles may take
        """
        return self.engine_of(self.array(pes), bandwidth, memory)

    def engine_of(self, array: tuple[int, int], bandwidth: Fraction, memory: int) -> Engine:
        """The same for given sizes of the two axes."""
        axes = tuple(
            ArrayAxis(axis.name, size, frozenset(axis.carries))
            for axis, size in zip(self.axes, array, strict=True)
        )
        rate = bandwidth * 8 / ELEMENT_BITS
        return Engine(
            name=f"{self.name}-{math.prod(array)}",
            cost_model="hierarchy",
            element_bits=ELEMENT_BITS,
            mac_energy=_MAC_ENERGY,
            clock_mhz=CLOCK_MHZ,
            levels=(
                MemoryLevel(DRAM, None, _DRAM_ENERGY, _DRAM_ENERGY),
                MemoryLevel(
                    MEMORY,
                    memory * 8 // ELEMENT_BITS,
                    _MEMORY_ENERGY,
                    _MEMORY_ENERGY,
                    read_bandwidth=rate,
                    write_bandwidth=rate,
                    fanout=Fanout(axes, _NOC_ENERGY, multicast=True, reduction=self.reduction),
                ),
                MemoryLevel(
                    PE, _PE_ELEMENTS, _PE_ENERGY, _PE_ENERGY, double_buffered=True, sliding_window=True
                ),
            ),
        )


_STYLES = (
    DataflowStyle(
        "nvdla",
        "NVDLA",
        "weight-stationary: output channels x input channels, sums added across 64 input channels",
        (_Axis("k", "KG"), _Axis("c", "C")),
        _CLUSTER,
        reduction=True,
        window="RS",
        stationary=Role.WEIGHT,
    ),
    DataflowStyle(
        "shidiannao",
        "Shi-diannao",
        "output-stationary: output rows x output columns, every PE holds one output",
        (_Axis("y", "P"), _Axis("x", "Q")),
        None,
        reduction=False,
        window="RS",
        stationary=Role.OUTPUT,
    ),
    DataflowStyle(
        "eyeriss",
        "Eyeriss",
        "row-stationary: filter rows (replicated for output channels) x output rows, a filter row per PE",
        (_Axis("y", "RKG"), _Axis("x", "P")),
        None,
        reduction=True,
        window="S",
        stationary=Role.WEIGHT,
    ),
)


def dataflow_names() -> list[str]:
    """Names of all styles."""
    return [style.name for style in _STYLES]


def dataflow(name: str, where: str = "--dataflows", field: str | None = None) -> DataflowStyle:
    """The style of that name; raises ``InputError`` for any other."""
    for style in _STYLES:
        if style.name == name:
            return style
    raise InputError(where, field, unknown_name(name, dataflow_names()))
