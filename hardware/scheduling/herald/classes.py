"""Herald's accelerator classes and the systems that come with the package, made from class and style.

Names are ``STYLE-CLASS-FLOWS``: ``fda-edge-nvdla``, ``smfda-mobile-eyeriss``, ``rda-cloud``,
``hda-edge-maelstrom`` (NVDLA + Shi-diannao), ``hda-edge-nvdla-eyeriss`` and so on (table III).  Maelstrom's
partitions are table V's: ``hda-edge-maelstrom`` is the one found for AR/VR-A, ``hda-edge-maelstrom-ar-vr-b``
and ``hda-edge-maelstrom-mlperf`` those for the other workloads.  All other systems are split evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.styles import CLOCK_MHZ, dataflow, dataflow_names
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System
from tilewright.hardware.scheduling.own_engine import Flow, OwnEngine

# The paper gives a reconfigurable accelerator's energy (section I: 11.7 % more than an NVDLA-style FDA, on
# average) but not the time that reconfiguring takes: 1000 cycles per layer are assumed.
RDA_ENERGY_FACTOR = Fraction(1117, 1000)
RDA_RECONFIGURATION_CYCLES = 1000


@dataclass(frozen=True, slots=True)
class AcceleratorClass:
    """Resources of one class (Herald, table IV) and the steps of its partition grid.

    Parameters
    ----------
    pes, bandwidth, memory : PEs, NoC bytes per cycle (GB/s at 1 GHz), bytes of global memory
    pe_step, bandwidth_step : the finest grid that has all partitions of table V
    keep_activations : whether results may stay in the global memory of its systems
    """

    name: str
    pes: int
    bandwidth: int
    memory: int
    pe_step: int
    bandwidth_step: int
    keep_activations: bool = False


CLASSES = {
    resources.name: resources
    for resources in (
        AcceleratorClass("edge", 1024, 16, 4 << 20, 64, 4),
        AcceleratorClass("mobile", 4096, 64, 8 << 20, 256, 8),
        AcceleratorClass("cloud", 16384, 256, 16 << 20, 256, 32),
    )
}

MAELSTROM = ("nvdla", "shidiannao")
_HDAS = {
    "maelstrom": MAELSTROM,
    "shidiannao-eyeriss": ("shidiannao", "eyeriss"),
    "eyeriss-nvdla": ("eyeriss", "nvdla"),
    "nvdla-shidiannao-eyeriss": ("nvdla", "shidiannao", "eyeriss"),
}

# Herald, table V: bytes per cycle and PEs of (NVDLA, Shi-diannao).
TABLE_V = {
    ("edge", "ar-vr-a"): ((4, 12), (128, 896)),
    ("mobile", "ar-vr-a"): ((40, 24), (1792, 2304)),
    ("cloud", "ar-vr-a"): ((224, 32), (9728, 6656)),
    ("edge", "ar-vr-b"): ((4, 12), (128, 896)),
    ("mobile", "ar-vr-b"): ((48, 16), (1536, 2560)),
    ("cloud", "ar-vr-b"): ((128, 128), (12032, 4352)),
    ("edge", "mlperf"): ((4, 12), (64, 960)),
    ("mobile", "mlperf"): ((32, 32), (1280, 2816)),
    ("cloud", "mlperf"): ((160, 96), (8192, 8192)),
}


def accelerator_class(name: str, where: str = "--class") -> AcceleratorClass:
    """The class of that name; raises ``InputError`` for any other."""
    if name not in CLASSES:
        raise InputError(where, None, unknown_name(name, CLASSES))
    return CLASSES[name]


def with_steps(
    resources: AcceleratorClass, pe_step: int | None = None, bandwidth_step: int | None = None
) -> AcceleratorClass:
    """The class with another granularity of its grid of partitions; ``None`` keeps the class's own.

    Raises
    ------
    InputError : for steps of which the class's PEs or bandwidth are no whole number
    """
    changed = replace(
        resources,
        pe_step=pe_step or resources.pe_step,
        bandwidth_step=bandwidth_step or resources.bandwidth_step,
    )
    for flag, whole, step in (
        ("--pe-step", changed.pes, changed.pe_step),
        ("--bandwidth-step", changed.bandwidth, changed.bandwidth_step),
    ):
        if whole % step:
            raise InputError(flag, None, f"expected a divisor of {whole}, got {step}")
    return changed


def make_system(
    name: str,
    resources: AcceleratorClass,
    flows: Sequence[str],
    parts: Sequence[tuple[int, int | Fraction]] | None = None,
    description: str = "",
    engines: Mapping[str, Engine] | None = None,
) -> System:
    """A system of sub-accelerators with one dataflow each.

    Parameters
    ----------
    flows : names of dataflow styles, or of ``engines``
    engines : machines from files by name; the PEs of such a sub-accelerator are its machine's
    parts : PEs and bytes per cycle of each; by default equal parts (the first ones take what is left over)
    """
    parts = parts or list(
        zip(
            _even(resources.pes, len(flows), resources.pe_step),
            _even(resources.bandwidth, len(flows), 1),
            strict=True,
        )
    )
    named = [flow if list(flows).count(flow) == 1 else f"{flow}-{i + 1}" for i, flow in enumerate(flows)]
    own = engines or {}
    runs: dict[str, Flow] = {
        flow: OwnEngine(own[flow], CLOCK_MHZ) if flow in own else dataflow(flow) for flow in flows
    }
    subs = tuple(
        SubAccelerator(title, (runs[flow],), pes, Fraction(rate), Fraction(1, len(flows)))
        for title, flow, (pes, rate) in zip(named, flows, parts, strict=True)
    )
    system = _system(name, resources, subs, description)
    return replace(system, keep_activations=True) if resources.keep_activations else system


def list_system_presets() -> list[str]:
    """Names of the systems that come with the package, each class's in turn."""
    names = []
    for size in CLASSES:
        names += [f"fda-{size}-{flow}" for flow in dataflow_names()]
        names += [f"smfda-{size}-{flow}" for flow in dataflow_names()]
        names += [f"rda-{size}"]
        names += [f"hda-{size}-{flows}" for flows in _HDAS]
        names += [f"hda-{size}-maelstrom-{work}" for c, work in TABLE_V if c == size and work != "ar-vr-a"]
    return names


def system_preset(name: str) -> System:
    """The system of that name; raises ``InputError`` for any other."""
    if name not in list_system_presets():
        raise InputError(name, None, unknown_name(name, list_system_presets()))
    style, size, *rest = name.split("-", 2)
    resources = CLASSES[size]
    about = f"{resources.pes} PEs, {resources.bandwidth} GB/s, {resources.memory >> 20} MiB"
    if style == "rda":
        flows = tuple(dataflow(flow) for flow in dataflow_names())
        sub = SubAccelerator(
            "rda",
            flows,
            resources.pes,
            Fraction(resources.bandwidth),
            Fraction(1),
            RDA_RECONFIGURATION_CYCLES,
            RDA_ENERGY_FACTOR,
        )
        return _system(name, resources, (sub,), f"reconfigurable per layer, {about}")
    flow = rest[0]
    if style == "fda":
        return make_system(name, resources, [flow], description=f"one {flow} accelerator, {about}")
    if style == "smfda":
        return make_system(name, resources, [flow] * 2, description=f"two {flow} accelerators, {about}")
    if flow.startswith("maelstrom"):
        work = flow.removeprefix("maelstrom").removeprefix("-") or "ar-vr-a"
        rates, pes = TABLE_V[size, work]
        return make_system(
            name,
            resources,
            MAELSTROM,
            list(zip(pes, rates, strict=True)),
            f"Maelstrom as partitioned for {work} (table V), {about}",
        )
    return make_system(name, resources, _HDAS[flow], description=f"{flow.replace('-', ' + ')}, {about}")


def _system(
    name: str, resources: AcceleratorClass, subs: tuple[SubAccelerator, ...], description: str
) -> System:
    # DRAM is not in table IV: as wide as the NoC is assumed, which in a steady state never is the limit.
    return System(
        name, subs, resources.memory, CLOCK_MHZ, Fraction(resources.bandwidth), description=description
    )


def _even(total: int, count: int, step: int) -> list[int]:
    """``total`` in ``count`` parts of whole steps, the first ones larger."""
    steps, rest = divmod(total // step, count)
    return [(steps + (i < rest)) * step for i in range(count)]
