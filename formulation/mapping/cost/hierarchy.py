"""The ``hierarchy`` cost model: reads, fills and updates of every tensor at every memory level.

Energy is access counts (:mod:`~tilewright.formulation.mapping.cost.hierarchy_counts`) times unit energies;
latency stands in :mod:`~tilewright.formulation.mapping.cost.hierarchy_cycles`.  ``docs/cost-models.md`` has
the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.formulation.expression import Expr, as_expr, total
from tilewright.formulation.mapping.cost.base import (
    Limit,
    Statement,
    Traffic,
    array_limits,
    capacity_limits,
    energy_scale,
    whole,
)
from tilewright.formulation.mapping.cost.hierarchy_counts import (
    hops_of,
    next_stores,
    selected_counts,
    transported,
)
from tilewright.formulation.mapping.cost.hierarchy_cycles import cycles_of
from tilewright.formulation.mapping.cost.hierarchy_setup import check_set_ups
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import (
    OrderClass,
    all_order_classes,
    order_classes,
    sliding_dims,
)
from tilewright.hardware.mapping.engine import COMPUTING, LEAKAGE, Engine
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True)
class Hierarchy:
    """Any number of memory levels, any perfect nest."""

    name = "hierarchy"
    perfect_only = False
    even_only = False
    rounding_pj = 0

    def check(self, operator: Operator, engine: Engine) -> None:
        """Every operator has a meaning here, and every engine whose set-up cycles have one."""
        check_set_ups(engine)

    def orders(
        self, operator: Operator, engine: Engine, level: int, every: bool = False
    ) -> tuple[OrderClass, ...]:
        """Undominated effects, or every one; none for the innermost level, whose loops feed the PE.

        Parameters
        ----------
        operator, engine : the layer and the machine
        level : index of the memory level whose loops are ordered
        every : whether effects that another one dominates are given too
        """
        if level == len(engine.levels) - 1:
            return ()
        inner = engine.levels[level + 1 :]
        sliding = {
            tensor.name: sliding_dims(operator, tensor)
            if any(store.sliding_window and tensor.role in store.keeps for store in inner)
            else frozenset[str]()
            for tensor in operator.tensors
        }
        dims = [dim for dim, bound in operator.bounds.items() if bound > 1]
        if every:
            return all_order_classes(operator, dims, sliding)
        stored = {tensor.name for tensor in operator.tensors if any(tensor.role in s.keeps for s in inner)}
        return order_classes(operator, dims, sliding, stored)

    def statement(self, nest: Nest) -> Statement:
        """Energy, cycles and constraints; energies are exact decimals, scaled to integers."""
        engine = nest.engine
        scale = self.scale_of(engine)
        # Energies are decimals; the least factor that makes them whole keeps every sum exact.
        components: dict[str, Expr] = {COMPUTING: self._computing(nest, scale)}
        traffic: list[Traffic] = []
        details: dict[str, Expr] = {}
        for index, level in enumerate(engine.levels):
            parts: list[Expr] = []
            passed: list[Expr] = []
            for tensor in nest.operator.tensors:
                counts = selected_counts(nest, tensor, index, whole_run=True)
                out = total([counts.reads, counts.drains])
                reads = whole(level.read_energy_of(tensor.role), scale) * out
                writes = whole(level.write_energy_of(tensor.role), scale) * (counts.fills + counts.updates)
                parts.append(total([reads, writes]))
                # Levels that never store the tensor have no row in reports, though their counts are 0 as
                # well.
                if index in nest.residency[tensor.name].positions:
                    tile, hops = nest.kept(tensor, index), hops_of(nest, tensor, index)
                    traffic.append(
                        Traffic(level.name, tensor.name, out, counts.fills, counts.updates, tile, hops)
                    )
                    passed.append(hops)
            components[level.name] = total(parts)
            fan = engine.levels[index - 1].fanout if index else None
            if fan is not None and fan.sharing:
                details[f"{level.name} shared hops"] = total(passed)
                if fan.hop_energy:
                    components[f"{level.name} sharing"] = whole(fan.hop_energy, scale) * total(passed)
            if level.fanout is not None and level.fanout.energy:
                moved = total(transported(nest, tensor, index) for tensor in nest.operator.tensors)
                components[f"{level.name} network"] = whole(level.fanout.energy, scale) * moved
        cycles, times = cycles_of(nest)
        if engine.leak:
            components[LEAKAGE] = whole(engine.leak, scale) * cycles
        limits: list[Limit] = [*capacity_limits(nest), *array_limits(nest)]
        return Statement(
            energy=total(components.values()),
            energy_scale=scale,
            cycles=cycles,
            limits=tuple(limits),
            components=components,
            component_scale=scale,
            traffic=tuple(traffic),
            details={**times, **details},
        )

    def energy_by_store(
        self, nest: Nest, moved: MappingABC[tuple[int, str], Expr] | None = None
    ) -> dict[int, Expr]:
        """The energy, divided by the boundary at which what is moved is stored, or read by the PEs.

        Static power is in none of them: it belongs to cycles, which no boundary decides.

        What moves into a store, and partial sums out of it, depends on the tiles there and on the loops
        around them; so do the energy of the store outside that it takes, and of the networks between.

        Parameters
        ----------
        moved : as of :meth:`energy_of_moving`, where more is known of it
        """
        parts = {len(nest.blocks): self._computing(nest, self.scale_of(nest.engine))}
        for (boundary, _), own in (self.energy_of_moving(nest) if moved is None else moved).items():
            parts[boundary] = total([parts.get(boundary, 0), own])
        return dict(sorted(parts.items()))

    def energy_of_moving(self, nest: Nest) -> dict[tuple[int, str], Expr]:
        """The same without computing, for each tensor by itself: by boundary and tensor."""
        engine = nest.engine
        scale = self.scale_of(engine)
        parts: dict[tuple[int, str], list[Expr]] = {}
        for index, level in enumerate(engine.levels):
            fan = engine.levels[index - 1].fanout if index else None
            for tensor in nest.operator.tensors:
                read = whole(level.read_energy_of(tensor.role), scale)
                write = whole(level.write_energy_of(tensor.role), scale)
                residency = nest.residency[tensor.name]
                # Grouped by the next store inside: the tiles there decide what this level is read for.
                for store, chosen in next_stores(nest, tensor, index).items():
                    inner = len(nest.blocks) if store is None else residency.positions[store]
                    into = parts.setdefault((inner, tensor.name), [])
                    if level.fanout is not None and level.fanout.energy:
                        moved = transported(nest, tensor, index, chosen)
                        into.append(whole(level.fanout.energy, scale) * moved)
                    if index not in residency.positions:
                        continue
                    counts = selected_counts(nest, tensor, index, whole_run=True, among=chosen)
                    into += [read * counts.reads, write * counts.updates]
                    # Fills and drains depend on this level's own tiles, so they stand at its own boundary.
                    own = [write * counts.fills, read * counts.drains]
                    parts.setdefault((residency.positions[index], tensor.name), []).extend(own)
                    if fan is not None and fan.sharing and fan.hop_energy:
                        into.append(whole(fan.hop_energy, scale) * hops_of(nest, tensor, index, chosen))
        return {place: total(terms) for place, terms in parts.items()}

    @staticmethod
    def scale_of(engine: Engine) -> int:
        """What energies are multiplied by, so that all of them are integers."""
        fans = [level.fanout for level in engine.levels if level.fanout is not None]
        return energy_scale(
            [
                engine.mac_energy,
                *(energy for level in engine.levels for energy in level.energies),
                *(fan.energy for fan in fans),
                *(fan.hop_energy for fan in fans),
                engine.leak,
            ]
        )

    @staticmethod
    def _computing(nest: Nest, scale: int) -> Expr:
        return as_expr(whole(nest.engine.mac_energy, scale) * nest.operator.iterations * nest.operator.turns)
