"""Systems: several sub-accelerators on one chip, each with a dataflow of its own (Herald, definition 1).

The sub-accelerators share a global memory.  PEs and NoC wires are partitioned: each has its own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tilewright.foundation.units import exact
from tilewright.hardware.mapping.identity import engine_to_dict
from tilewright.hardware.mapping.styles import ELEMENT_BITS
from tilewright.hardware.scheduling.own_engine import Flow, OwnEngine
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True, slots=True)
class SubAccelerator:
    """One accelerator of a system.

    Parameters
    ----------
    name : unique in the system
    dataflows : the dataflow styles that it can run; more than one where it is reconfigurable per layer; or
        the machine file that it is
    pes : processing elements
    bandwidth : bytes per cycle between the global memory and the PEs
    share : the part of the global memory that one layer running here may take, both buffers together
    reconfiguration_cycles : cycles before every layer
    energy_factor : by which the energy of every layer is multiplied
    """

    name: str
    dataflows: tuple[Flow, ...]
    pes: int
    bandwidth: Fraction
    share: Fraction
    reconfiguration_cycles: int = 0
    energy_factor: Fraction = Fraction(1)

    @property
    def flow_names(self) -> str:
        """Such as ``nvdla``, or ``nvdla/shidiannao`` where there is a choice per layer."""
        return "/".join(flow.name for flow in self.dataflows)

    @property
    def own(self) -> OwnEngine | None:
        """The machine file that it is; ``None`` where it runs under dataflow styles."""
        return next((flow for flow in self.dataflows if isinstance(flow, OwnEngine)), None)


@dataclass(frozen=True)
class System:
    """Sub-accelerators, the memory that they share, and what passing work between them costs.

    Parameters
    ----------
    memory_bytes : the global memory
    clock_mhz : one clock for all
    dram_bandwidth : bytes per cycle between DRAM and the global memory; partitioned like the NoC
    prefetch : whether the first weights of a layer are fetched from DRAM while the layer before it on the
        same sub-accelerator runs; otherwise the sub-accelerator waits for them
    context_cycles, context_energy : what it costs (cycles before the start, pJ) when a layer reads the
        result of a layer that ran under another dataflow, whose data layout differs
    keep_activations : whether a layer's result may stay in the global memory for the layers that read it
        (Herald, section IV-A, step 7); otherwise every result goes to DRAM and is fetched again
    """

    name: str
    subs: tuple[SubAccelerator, ...]
    memory_bytes: int
    clock_mhz: Fraction
    dram_bandwidth: Fraction
    prefetch: bool = True
    context_cycles: int = 0
    context_energy: Fraction = Fraction(0)
    keep_activations: bool = False
    description: str = ""

    @property
    def pes(self) -> int:
        return sum(sub.pes for sub in self.subs)

    @property
    def bandwidth(self) -> Fraction:
        """Bytes per cycle of all sub-accelerators."""
        return sum((sub.bandwidth for sub in self.subs), Fraction(0))

    @property
    def result_bits(self) -> int:
        """Bits of an element of a result in the global memory, on the engine that has the widest."""
        own = [sub.own for sub in self.subs]
        return max(ELEMENT_BITS if flow is None else flow.width(Role.OUTPUT) for flow in own)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything but name and description."""
        data = system_to_dict(self)
        names = {"name", "description"} | (set() if self.keep_activations else {"keep_activations"})
        content = {key: value for key, value in data.items() if key not in names}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def system_to_dict(system: System) -> dict[str, Any]:
    """Every field as JSON-ready data; fractions are exact text."""
    return {
        "name": system.name,
        "description": system.description,
        "memory_bytes": system.memory_bytes,
        "clock_mhz": exact(system.clock_mhz),
        "dram_bytes_per_cycle": exact(system.dram_bandwidth),
        "prefetch": system.prefetch,
        "context_cycles": system.context_cycles,
        "context_energy_pj": exact(system.context_energy),
        "keep_activations": system.keep_activations,
        "sub_accelerators": [
            {
                "name": sub.name,
                "dataflows": [flow.name for flow in sub.dataflows],
                "pes": sub.pes,
                "bytes_per_cycle": exact(sub.bandwidth),
                "memory_share": exact(sub.share),
                "reconfiguration_cycles": sub.reconfiguration_cycles,
                "energy_factor": exact(sub.energy_factor),
                **({} if sub.own is None else _own(sub.own)),
            }
            for sub in system.subs
        ],
    }


def _own(own: OwnEngine) -> dict[str, Any]:
    """A machine file in its system; absent where there is none, so that hashes of other systems stay."""
    return {
        "arch": engine_to_dict(own.engine),
        "memory_energy_pj": exact(own.memory_energy),
        "dram_energy_pj": exact(own.dram_energy),
    }
