"""What a loop nest is made of: blocks of loops, and the places where tensors live between them."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.formulation.expression import Expr, Variable, as_expr
from tilewright.formulation.mapping.nests.orders import OrderClass
from tilewright.hardware.mapping.engine import ArrayAxis, Engine
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True, slots=True)
class Block:
    """The loops between two boundaries.

    Parameters
    ----------
    level : index of the memory level whose tiles the loops walk through, or whose fan-out they fill
    axis : the array axis of a spatial block; ``None`` for a temporal one
    orders : the effects that the loop order may have; one for a spatial block or a fixed order
    selector : the variable that chooses among them, or the index of the chosen one
    """

    level: int
    axis: ArrayAxis | None
    orders: tuple[OrderClass, ...] = ()
    selector: Variable | int = 0

    @property
    def is_temporal(self) -> bool:
        return self.axis is None


@dataclass(frozen=True, slots=True)
class Residency:
    """Where one tensor may live.

    Parameters
    ----------
    positions : per memory level index, the boundary at which a tile of the tensor is stored there
    alternatives : the sets of levels (outermost first) that a mapping may choose to store it at
    selector : the variable that chooses among them, or the index of the chosen one
    """

    positions: MappingABC[int, int]
    alternatives: tuple[tuple[int, ...], ...]
    selector: Variable | int = 0


def loop_hosts(operator: Operator, engine: Engine) -> tuple[int, ...]:
    """Per level, the one that its temporal loops count as.

    That is the nearest one outside, itself included, that can store a tensor of the operator.
    """
    roles = {tensor.role for tensor in operator.tensors}
    hosts: list[int] = []
    for index, level in enumerate(engine.levels):
        hosts.append(index if roles & level.keeps or not hosts else hosts[-1])
    return tuple(hosts)


def whole(operator: Operator) -> dict[str, Expr]:
    """The outermost boundary: every dimension at its bound."""
    return {dim: as_expr(bound) for dim, bound in operator.bounds.items()}
