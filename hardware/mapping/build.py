"""From a machine file to an engine: units become elements and pJ per element, and the parts are checked."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tilewright.foundation.description import FieldError, Location
from tilewright.foundation.units import Size
from tilewright.hardware.mapping.elements import Elements, of_roles
from tilewright.hardware.mapping.engine import (
    COMPUTING,
    LEAKAGE,
    PE,
    ArrayAxis,
    Dma,
    Engine,
    Fanout,
    MemoryLevel,
)
from tilewright.hardware.mapping.level_energies import level_energies
from tilewright.hardware.mapping.schema import BanksSection, FanoutSection, LevelSection, MachineFile
from tilewright.hardware.mapping.static import areas, leakage
from tilewright.hardware.mapping.timing import Timing
from tilewright.workloads.mapping.operator import Role


def build_engine(machine: MachineFile, name: str) -> Engine:
    """The engine that a machine file describes; raises ``FieldError``."""
    engine = Engine(
        name=name,
        cost_model=machine.cost_model,
        element_bits=machine.compute.element_bits,
        mac_energy=machine.compute.mac_energy,
        clock_mhz=machine.clock_mhz,
        levels=tuple(_level(machine, index) for index in range(len(machine.levels))),
        dma=_dma(machine),
        description=machine.description,
    )
    engine = replace(engine, leakage=leakage(machine, engine), area=areas(machine, engine))
    _check_names(engine)
    if engine.cost_model == "dmazerunner":
        if machine.compute.widths is not None:
            raise FieldError(("compute", "widths"), "expected none for cost_model dmazerunner")
        if engine.leakage:
            raise FieldError(("cost_model",), "dmazerunner knows no static power, expected hierarchy")
        _check_dmazerunner(engine)
    return engine


def level_bytes(machine: MachineFile) -> tuple[Fraction | None, ...]:
    """Bytes of every level as the file has them, both buffers together; ``None`` for an unbounded one."""
    return tuple(
        Elements.of(machine, index).written_bytes(section, ("levels", index))
        for index, section in enumerate(machine.levels)
    )


def _dma(machine: MachineFile) -> Dma | None:
    if machine.dma is None:
        return None
    ratio = machine.clock_mhz / machine.dma.clock_mhz
    return Dma(machine.dma.startup_cycles, machine.dma.cycles_per_byte, ratio)


def _level(machine: MachineFile, index: int) -> MemoryLevel:
    section, here = machine.levels[index], ("levels", index)
    keeps = frozenset(Role) if section.keeps is None else frozenset(section.keeps)
    for role in section.may_bypass:
        if role not in keeps:
            raise FieldError((*here, "may_bypass"), f"expected roles that the level keeps, got {role}")
    if section.double_buffered and section.streamed:
        raise FieldError((*here, "streamed"), "expected either double_buffered or streamed, got both")
    if index == 0:
        _check_outermost(section, keeps)
    if index == len(machine.levels) - 1 and section.fanout is not None:
        raise FieldError((*here, "fanout"), "expected no fanout at the innermost level")
    elements = Elements.of(machine, index)
    partitions = _partitions(section, here, elements)
    bank = None
    if section.banks is not None:
        bank = elements.in_capacity(section.banks.size, (*here, "banks", "size"))
    energy, own = level_energies(section, here, elements)
    rates = _rates(section, here, elements, machine.clock_mhz)
    return MemoryLevel(
        name=section.name,
        capacity=None if index == 0 else _capacity(section, here, elements, partitions),
        read_energy=energy.read,
        write_energy=energy.write,
        partitions=partitions,
        bank=bank,
        read_bandwidth=rates.get("read"),
        write_bandwidth=rates.get("write"),
        double_buffered=section.double_buffered or section.streamed,
        keeps=keeps,
        may_bypass=frozenset(section.may_bypass),
        sliding_window=section.sliding_window,
        fanout=None if section.fanout is None else _fanout(section.fanout, (*here, "fanout")),
        shared_bandwidth=rates.get("shared"),
        read_energies={role: own_energy.read for role, own_energy in own.items()},
        write_energies={role: own_energy.write for role, own_energy in own.items()},
        widths=elements.unusual,
        timing=_timing(section, here, elements),
    )


def _timing(section: LevelSection, here: Location, elements: Elements) -> Timing:
    """Set-up cycles, and whether transfers hide."""
    setup = section.setup
    amounts = {} if setup is None else {name: value for name, value in setup if value is not None}
    bits = None
    if section.row is not None:
        bits = elements.bits_of(section.row, (*here, "row"))
    if section.refetch and here[1] == 0:
        raise FieldError((*here, "refetch"), "expected none: nothing is outside the outermost level")
    return Timing(section.overlap, **amounts, row_bits=bits, refetch=section.refetch, drained=section.drained)


def _rates(
    section: LevelSection, here: Location, elements: Elements, clock_mhz: Fraction
) -> dict[str, Fraction]:
    """Bandwidths by port, in elements of the machine's usual width per cycle."""
    ports = section.bandwidth
    if ports is None:
        return {}
    if ports.shared is not None and (ports.read is not None or ports.write is not None):
        message = "expected either a shared port or one to read and one to write, got both"
        raise FieldError((*here, "bandwidth", "shared"), message)
    written = {"read": ports.read, "write": ports.write, "shared": ports.shared}
    return {
        way: elements.per_cycle(rate, clock_mhz, (*here, "bandwidth", way))
        for way, rate in written.items()
        if rate is not None
    }


def _check_outermost(section: LevelSection, keeps: frozenset[Role]) -> None:
    for field in ("capacity", "elements", "banks", "partitions"):
        if getattr(section, field) is not None:
            raise FieldError(
                ("levels", 0, field),
                "expected no limit: the outermost level is unbounded, leave the field out",
            )
    if keeps != frozenset(Role):
        missing = ", ".join(sorted(frozenset(Role) - keeps))
        raise FieldError(("levels", 0, "keeps"), f"expected the outermost level to keep {missing} too")
    if section.may_bypass:
        raise FieldError(("levels", 0, "may_bypass"), "the outermost level cannot be bypassed")


def _capacity(section: LevelSection, here: Location, elements: Elements, partitions: dict[Role, int]) -> int:
    """Usable elements: the shared capacity, or the sum of the partitions where every role has its own."""
    written = [field for field in ("capacity", "elements") if getattr(section, field) is not None]
    if len(written) == 2:
        raise FieldError((*here, "elements"), "expected either capacity or elements, got both")
    if partitions and partitions.keys() == elements.widths.keys():
        if written or section.banks is not None:
            field = written[0] if written else "banks"
            raise FieldError((*here, field), "expected none: every role that is kept has its own partition")
        return sum(partitions.values())
    if partitions and section.banks is not None:
        raise FieldError((*here, "banks"), "expected either banks or partitions, got both")
    if section.capacity is not None:
        total = elements.in_capacity(section.capacity, (*here, "capacity"))
    elif section.elements is not None:
        total = elements.in_capacity(Size(Fraction(section.elements), in_bytes=False), (*here, "elements"))
    elif section.banks is not None and section.banks.count is not None:
        total = section.banks.count * elements.in_capacity(section.banks.size, (*here, "banks", "size"))
    else:
        message = "missing, expected a size such as 128 kB (only the outermost level is unbounded)"
        raise FieldError((*here, "capacity"), message)
    if section.banks is not None:
        _check_banks(section.banks, (*here, "banks"), elements, total, halved=section.double_buffered)
    return _usable(total, section, (*here, *(written or ["banks"])))


def _check_banks(
    banks: BanksSection, here: Location, elements: Elements, total: int, *, halved: bool
) -> None:
    size = elements.in_capacity(banks.size, (*here, "size"))
    count = total // size if banks.count is None else banks.count
    if count * size != total:
        message = f"expected banks that add up to the capacity of {total} elements, got {count * size}"
        raise FieldError(here, message)
    if halved and count % 2:
        message = f"expected an even number of banks for two buffers, got {count}"
        raise FieldError((*here, "count"), message)


def _partitions(section: LevelSection, here: Location, elements: Elements) -> dict[Role, int]:
    field = (*here, "partitions")
    capacities: dict[Role, int] = {}
    for role, size in of_roles(
        section.partitions, field, elements.widths, "partitions", "a size for"
    ).items():
        location = (*field, role.value)
        capacities[role] = _usable(elements.in_partition(role, size, location), section, location)
    return capacities


def _usable(total: int, section: LevelSection, location: Location) -> int:
    """Half where the level holds two copies."""
    if not section.double_buffered:
        return total
    if total % 2:
        raise FieldError(location, f"expected an even number of elements for two buffers, got {total}")
    return total // 2


def _fanout(section: FanoutSection, here: Location) -> Fanout:
    hop_energy = section.hop_energy
    if hop_energy is not None and not section.sharing:
        raise FieldError((*here, "hop_energy"), "expected sharing: true with it")
    axes = tuple(
        ArrayAxis(axis.name, axis.size, None if axis.carries is None else frozenset(axis.carries))
        for axis in section.axes
    )
    if not section.sharing:
        return Fanout(axes, section.energy, section.multicast, section.reduction)
    hop_energy = section.energy if hop_energy is None else hop_energy
    return Fanout(axes, section.energy, section.multicast, section.reduction, True, hop_energy)


def _check_names(engine: Engine) -> None:
    levels: set[str] = set()
    axes: set[str] = set()
    for index, level in enumerate(engine.levels):
        if level.name in (PE, COMPUTING, LEAKAGE):
            # Energies, static power and areas are listed by name.
            message = f"expected another name than those of what is no level, got {level.name!r}"
            raise FieldError(("levels", index, "name"), message)
        if level.name in levels:
            message = f"expected a name of its own, got {level.name!r} twice"
            raise FieldError(("levels", index, "name"), message)
        levels.add(level.name)
        for number, axis in enumerate(level.fanout.axes if level.fanout else ()):
            if axis.name in axes:
                location = ("levels", index, "fanout", "axes", number, "name")
                raise FieldError(location, f"expected a name of its own, got {axis.name!r} twice")
            axes.add(axis.name)


def _check_dmazerunner(engine: Engine) -> None:
    """The cost model's machine: DRAM, a scratch-pad fed by a DMA engine, and an array of register files."""
    if len(engine.levels) != 3:
        message = f"expected exactly 3 levels for cost_model dmazerunner, got {len(engine.levels)}"
        raise FieldError(("levels",), message)
    if engine.dma is None:
        message = "missing, cost_model dmazerunner expects {startup_cycles, cycles_per_byte, clock_mhz}"
        raise FieldError(("dma",), message)
    if engine.levels[0].fanout is not None:
        raise FieldError(
            ("levels", 0, "fanout"), "expected no fanout between levels 1 and 2 for cost_model dmazerunner"
        )
    if engine.levels[1].fanout is None:
        raise FieldError(
            ("levels", 1, "fanout"), "missing, cost_model dmazerunner expects one between levels 2 and 3"
        )
    if engine.levels[1].fanout.sharing:
        raise FieldError(
            ("levels", 1, "fanout", "sharing"), "expected no buffer sharing for cost_model dmazerunner"
        )
    for index, level in enumerate(engine.levels):
        if level.keeps != frozenset(Role):
            raise FieldError(
                ("levels", index, "keeps"), "expected every role for cost_model dmazerunner, leave it out"
            )
        for field, has in {**level.particulars, "setup": not level.timing.plain}.items():
            if has:
                location: Location = ("levels", index, *field.split("."))
                raise FieldError(location, "expected none for cost_model dmazerunner")
