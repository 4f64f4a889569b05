"""The machine for layers of a group that say how wide their elements are.

Elements of a role must be as wide in all layers, since levels tell tensors apart by their roles.  A result
has its own width in the outermost level and that of its sums further inside, so a level keeps an intermediate
where these sums and its readers' operands are equally wide.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.workloads.mapping.operator import Operator


def at_widths(group: FusedGroup, engine: Engine) -> tuple[FusedGroup, Engine]:
    """The group without widths, and the machine that has them instead.

    Parameters
    ----------
    group, engine : the layers and the machine

    Raises
    ------
    InputError : where two layers have elements of one role in different widths
    """
    if not any(operator.states_widths for _, operator in group.layers):
        return group, engine
    whole = engine
    for _, operator in group.layers:
        whole = fitted(whole, operator)
    for name, operator in group.layers:
        own = fitted(engine, operator)
        roles = {tensor.role for tensor in operator.tensors}
        for role in sorted(roles):
            for level, mine in zip(whole.levels, own.levels, strict=True):
                if whole.width(level, role) != own.width(mine, role):
                    message = f"{name} has {role.value} of another width than others, expected one a role"
                    raise InputError(name, "widths", message)
    layers = tuple((name, _without_widths(operator)) for name, operator in group.layers)
    return replace(group, layers=layers), whole


def _without_widths(operator: Operator) -> Operator:
    return replace(
        operator, tensors=tuple(replace(tensor, bits=None, sum_bits=None) for tensor in operator.tensors)
    )
