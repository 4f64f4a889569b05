"""What every fused mapping of a group takes at least, before its trees are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from tilewright.formulation.mapping.fused.evaluator import sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.shared_traffic import movement_energy
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.solvers.mapping.fused.floors.needs import Needs
from tilewright.solvers.mapping.fused.trees.turn_engine import Homes, TurnEngines, shared_levels
from tilewright.workloads.mapping.operator import Operator, Tensor


def least_energy(group: FusedGroup, engines: TurnEngines, homes: Callable[[str], Iterable[int]]) -> Fraction:
    """What every fused mapping takes at least, whatever its shared loops and however much room there is.

    Of every layer the operations run whose results somebody needs.  All elements that these touch come out of
    their home once, and the innermost level that must store them serves every operation.

    Parameters
    ----------
    group, engines : what is fused, and what turns see of the machine
    homes : of a layer that is read inside, the levels that may be its home
    """
    bound = _Bound(group, engines)
    least = Fraction(0)
    for name, operator in bound.needed.items():
        least += bound.engines[name].operations(operator)
        for tensor in operator.tensors:
            if group.reading(name, tensor.name) is None and not (tensor.is_output and group.read_by(name)):
                least += bound.outside(name, tensor)
        if group.read_by(name):
            least += min((bound.passed_on(name, home) for home in homes(name)), default=Fraction(0))
    return least


class _Bound:
    """The bound of one group, tensor by tensor."""

    def __init__(self, group: FusedGroup, engines: TurnEngines) -> None:
        self.group, self.engine = group, engines.engine
        needs = Needs(group)
        self.needed: dict[str, Operator] = {}
        self.engines: dict[str, TurnEngines] = {}
        for name, operator in group.layers:
            sizes = {dim: max(1, len(needs.elements[name, dim])) for dim in operator.bounds}
            self.needed[name] = sized(operator, sizes)
            # Turns through windows have sizes that do not divide, which may be spread further.
            self.engines[name] = engines.loosened(
                dim
                for dim, bound in operator.bounds.items()
                if sizes[dim] != bound or needs.is_windowed(name, dim)
            )

    def passed_on(self, layer: str, home: int) -> Fraction:
        """Of an intermediate in its home, in both its roles, and of its copy if it leaves."""
        operator = self.needed[layer]
        total = self._least(layer, operator.output, home)
        for reading in self.group.read_by(layer):
            operand = self.needed[reading.reader].tensor(reading.operand)
            total += self._least(reading.reader, operand, home)
        if home and layer in self.group.leaving:
            total += self._moved(operator, operator.output, home)
        return total

    def outside(self, layer: str, tensor: Tensor) -> Fraction:
        """Of a tensor from outside the group, streamed or resident in some level."""
        operator = self.needed[layer]
        options = [self._least(layer, tensor, 0)]
        for level in range(1, shared_levels(self.engine) + 1):
            if tensor.role in self.engine.levels[level].keeps:
                options.append(self._moved(operator, tensor, level) + self._least(layer, tensor, level))
        return min(options)

    def _least(self, layer: str, tensor: Tensor, home: int) -> Fraction:
        operator = self.needed[layer]
        starts: Homes = ((tensor.role, home),) if home else ()
        least = self.engines[layer].least_energy(operator, tensor, starts)
        if tensor.is_output and not self._gains_by_whole_sums(tensor, home):
            # Sums that are cut into turns might take less inside than they take more from their home.
            plain = touched(operator, tensor) * self.engine.levels[home].write_energy_of(tensor.role)
            return min(least, plain)
        return least

    def _gains_by_whole_sums(self, tensor: Tensor, home: int) -> bool:
        """Whether taking sums out of their home and back costs no less than adding to them further inside."""
        levels, role = self.engine.levels, tensor.role
        costs = [level.read_energy_of(role) + level.write_energy_of(role) for level in levels[home:]]
        return costs[0] >= max(costs)

    def _moved(self, operator: Operator, tensor: Tensor, level: int) -> Fraction:
        """Of moving a whole tensor once between the outermost level and another one."""
        return movement_energy(self.engine, tensor, (0, level), (touched(operator, tensor), 0))
