"""What a cost model is: a statement of energy, cycles and constraints over a nest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, runtime_checkable

from tilewright.formulation.expression import Expr, as_expr, ceil_div, choose, product, total
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Role, Tensor


@dataclass(frozen=True, slots=True)
class Limit:
    """A constraint: ``expr <= bound``."""

    name: str
    expr: Expr
    bound: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Accesses of one tensor at one memory level, summed over all active instances.

    Parameters
    ----------
    reads : elements read, by the level inside or by the PEs
    fills : elements written from the level outside
    updates : elements written from the level inside (outputs and partial sums)
    tile : elements that one instance holds
    hops : elements that instances pass on to each other where they share the tensor
    """

    level: str
    tensor: str
    reads: Expr
    fills: Expr
    updates: Expr
    tile: Expr
    hops: Expr = field(default_factory=lambda: as_expr(0))


@dataclass(frozen=True)
class Statement:
    """Everything that a cost model says of a nest.

    Parameters
    ----------
    energy : in units of ``1 / energy_scale`` pJ
    cycles : engine cycles
    limits : capacity and array constraints, and what makes order choices legal
    components : energy by component, in units of ``1 / component_scale`` pJ; they add up to the energy
        before any rounding
    traffic : access counts for reports
    details : further named figures for reports
    """

    energy: Expr
    energy_scale: int
    cycles: Expr
    limits: tuple[Limit, ...]
    components: MappingABC[str, Expr]
    component_scale: int
    traffic: tuple[Traffic, ...] = ()
    details: MappingABC[str, Expr] = field(default_factory=dict)


class CostModel(Protocol):
    """A cost model.  A new one is one module with such an object, named in the registry.

    ``perfect_only`` states that tile sizes must divide each other, ``even_only`` that all tensors of a level
    begin to live at one point.
    """

    name: str
    perfect_only: bool
    even_only: bool

    def check(self, operator: Operator, engine: Engine) -> None:
        """Raise ``InputError`` where the model cannot speak of this operator or engine."""

    def orders(
        self, operator: Operator, engine: Engine, level: int, every: bool = False
    ) -> tuple[OrderClass, ...]:
        """The order effects that a search of this level's loops must consider.

        Those suffice for one best mapping; with ``every`` all different effects are given.

        Parameters
        ----------
        operator, engine : the layer and the machine
        level : index of the memory level whose loops are ordered, 0 for the outermost
        every : whether effects that another one dominates are given too
        """

    def statement(self, nest: Nest) -> Statement:
        """Energy, cycles and constraints of a nest."""


@runtime_checkable
class ByStore(Protocol):
    """A cost model that states where the energy goes."""

    def energy_by_store(self, nest: Nest) -> dict[int, Expr]:
        """The energy, divided by the boundary at which what is moved is stored, outermost first.

        What is not stored but read by the PEs stands at the boundary behind the last block.  Every part is
        never negative, and all of them add up to the statement's energy without leakage, which belongs to
        cycles.  In a :class:`~tilewright.formulation.mapping.nests.merged.MergedNest` none is larger than in
        the nest itself, for some order of every run.
        """


def comparable_rounding(model: CostModel) -> int | None:
    """The most pJ by which a comparable cost model rounds a layer's energy; ``None`` for any other model.

    A comparable model's energy is a sum of the machine's unit energies, each times a count that does not
    depend on them, up to this rounding; with a larger size or bandwidth no mapping becomes illegal, and none
    takes more energy or cycles.  What is proven on one machine then speaks of others.  The model's class says
    so by ``rounding_pj``; one that inherits from it may count otherwise, and has to say it again.
    """
    rounding: int | None = vars(type(model)).get("rounding_pj")
    return rounding


def energy_scale(energies: Iterable[Fraction]) -> int:
    """The smallest factor that makes all energies integers."""
    return math.lcm(*(energy.denominator for energy in energies))


def whole(energy: Fraction, scale: int) -> int:
    """An energy in units of ``1 / scale`` pJ, where its denominator divides the scale."""
    return energy.numerator * (scale // energy.denominator)


def resident(nest: Nest, tensor: Tensor, level: int, value: Expr) -> Expr:
    """``value`` where the tensor is stored at the level, else 0.

    Parameters
    ----------
    nest : has the residency's selector
    tensor : which may bypass the level
    level : index of a memory level
    value : what counts where the level stores the tensor
    """
    residency = nest.residency[tensor.name]
    return choose(
        residency.selector, [value if level in chosen else as_expr(0) for chosen in residency.alternatives]
    )


def capacity_limits(nest: Nest) -> list[Limit]:
    """What a buffer holds must fit: whole banks where a level has banks, each role into its own partition.

    Where elements of several widths share a capacity, sizes are in the greatest unit that divides all.
    """
    limits: list[Limit] = []
    engine = nest.engine
    for index, level in enumerate(engine.levels):
        shares: dict[Role | None, list[Tensor]] = {}
        for tensor in nest.operator.tensors:
            if index in nest.residency[tensor.name].positions:
                # Roles with a partition of their own take nothing of what the others share.
                part = tensor.role if tensor.role in level.partitions else None
                shares.setdefault(part, []).append(tensor)
        for part, held in shares.items():
            size_limit = level.capacity if part is None else level.partitions[part]
            if size_limit is not None:
                bits = size_limit * (
                    engine.capacity_element_bits(level) if part is None else engine.width(level, part)
                )
                suffix = "" if part is None else f" for {part}"
                limits.append(_capacity_limit(f"capacity of {level.name}{suffix}", nest, index, held, bits))
    return limits


def _capacity_limit(name: str, nest: Nest, index: int, held: Sequence[Tensor], bits: int) -> Limit:
    """Some tensors within so many bits of a level."""
    engine = nest.engine
    level = engine.levels[index]
    widths = {tensor: engine.width(level, tensor.role) for tensor in held}
    bank = None if level.bank is None else level.bank * engine.capacity_element_bits(level)
    unit = math.gcd(*widths.values()) if bank is None else bank
    sizes: list[Expr] = []
    for tensor, width in widths.items():
        size = nest.kept(tensor, index)
        if bank is None:
            size = width // unit * size
        else:
            common = math.gcd(width, bank)
            # Each tensor is rounded up to whole banks; the division is reduced, so that numbers stay small.
            size = ceil_div(width // common * size, bank // common)
        sizes.append(resident(nest, tensor, index, size))
    if bank is None and len({*widths.values()}) > 1:
        name += f" in units of {unit} bits"
    return Limit(name, total(sizes), bits // unit)


def array_limits(nest: Nest) -> list[Limit]:
    """Spatial loops must fit their array axes."""
    return [
        Limit(
            f"axis {block.axis.name} of {nest.engine.levels[block.level].name}",
            product(nest.trips([index])),
            block.axis.size,
        )
        for index, block in enumerate(nest.blocks)
        if block.axis is not None
    ]
