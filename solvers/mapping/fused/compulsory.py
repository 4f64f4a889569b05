"""What every fused mapping of a group takes at least, before its trees are listed."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.mapping.compulsory import touched
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.solvers.mapping.fused.turn_engine import TurnEngines


def least_energy(group: FusedGroup, engines: TurnEngines) -> Fraction:
    """What every fused mapping takes at least.

    Results that leave are written to the outermost level once.  All operations run of layers whose results
    leave, and of those that such layers read whole; what these read from outside is read once.
    """
    outermost = engines.engine.levels[0]
    least = Fraction(0)
    whole = set(group.leaving)
    for name in reversed(group.names):
        if any(r.reader in whole and group.is_plain(r) for r in group.read_by(name)):
            whole.add(name)
        operator = group.operator(name)
        if name in group.leaving:
            output = operator.output
            least += output.footprint(operator.bounds) * outermost.write_energy_of(output.role)
        if name in whole:
            least += engines.operations(operator)
            least += sum(
                (
                    touched(operator, tensor) * outermost.read_energy_of(tensor.role)
                    for tensor in operator.inputs
                    if group.reading(name, tensor.name) is None
                ),
                Fraction(0),
            )
    return least
