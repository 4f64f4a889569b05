"""Greedy fusion by depth: from each layer on, the next one joins as long as the group takes less."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tilewright import __version__
from tilewright.formulation.mapping.fused.arena import FusionArena, Names
from tilewright.formulation.method import Outcome
from tilewright.heuristics.mapping.fused.descent import descend, flat_shapes


@dataclass(frozen=True)
class Greedy:
    """Groups grow layer by layer; their trees are one sequence whose loops are cut by steepest descent."""

    name = "greedy"
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, arena: FusionArena) -> Outcome:
        """Go through the layers in their order; what is in a group is not looked at again."""
        groups = set(arena.groups())
        order = arena.order()
        taken: set[str] = set()
        for name in order:
            if name in taken:
                continue
            names: Names = (name,)
            value = arena.alone(names)
            while value is not None:
                larger = next(
                    (
                        group
                        for other in order
                        if other not in taken and other not in names
                        for group in [tuple(n for n in order if n in names or n == other)]
                        if group in groups
                    ),
                    None,
                )
                if larger is None:
                    break
                added = tuple(other for other in larger if other not in names)
                alone, fused = arena.alone(added), self._least(arena, larger)
                if alone is None or fused is None or fused >= value + alone:
                    break
                names, value = larger, fused
            taken |= set(names)
        return Outcome()

    def _least(self, arena: FusionArena, names: Names) -> Fraction | None:
        values = [descend(arena, names, shape) for shape in flat_shapes(arena, names)]
        return min((value for value in values if value is not None), default=None)
