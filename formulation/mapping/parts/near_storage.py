"""What levels between the outermost one and the first array, the *near* ones, store of each tensor."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC

from tilewright.formulation.expression import Expr, Variable, as_expr, choose
from tilewright.formulation.mapping.nests.arrangements import segments
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.hardware.mapping.engine import Engine

Storage = tuple[tuple[int, ...], ...]
"""The levels that store each tensor of an operator, outermost first."""


def near_levels(engine: Engine) -> range:
    """Those between the outermost level and the first array."""
    return segments(engine)[1].levels


def storage_of(problem: LayerProblem) -> Storage:
    """What stores each tensor on a machine whose levels may not be passed by."""
    levels = [*enumerate(problem.engine.levels)]
    return tuple(
        tuple(index for index, level in levels if tensor.role in level.keeps)
        for tensor in problem.operator.tensors
    )


def storage_under(part: LayerProblem, chosen: MappingABC[Variable, int]) -> Storage:
    """What stores each tensor under the choices of a part."""
    residencies = (part.space.nest.residency[tensor.name] for tensor in part.operator.tensors)
    return tuple(
        own.alternatives[own.selector if isinstance(own.selector, int) else chosen[own.selector]]
        for own in residencies
    )


def spent_elsewhere(part: LayerProblem, spent: MappingABC[Storage, int]) -> Expr:
    """What is spent in the other part under the storage that is chosen, where levels may be passed by.

    Parameters
    ----------
    spent : for every storage
    """
    residencies = [part.space.nest.residency[tensor.name] for tensor in part.operator.tensors]

    def chosen(stores: Storage) -> Expr:
        if len(stores) == len(residencies):
            return as_expr(spent[stores])
        own = residencies[len(stores)]
        return choose(own.selector, [chosen((*stores, levels)) for levels in own.alternatives])

    return chosen(())
