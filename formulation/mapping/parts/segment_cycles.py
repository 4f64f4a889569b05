"""Cycles of parts of the machine that bound uneven storage: ports of the outermost level, and first fills.

What near levels store, and what passes them, leaves the outermost level through one port.  First fills and
last drains are hidden by nothing (``docs/uneven.md``).
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from tilewright.formulation.expression import Expr, as_expr, choose, maximum, total
from tilewright.formulation.mapping.cost.base import Statement
from tilewright.formulation.mapping.cost.hierarchy_cycles import first_and_last, first_tiles, port_times
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.formulation.mapping.parts.entering import Entering, least_on_port
from tilewright.formulation.mapping.parts.near_storage import near_levels
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.workloads.mapping.operator import Role

FILLS = "first fills"
"""The detail of a statement that has the cycles of first fills and last drains of near levels."""
APART = "cycles without first fills"
"""The detail of the inside's statement that has its cycles without first fills of near levels."""
PORT = "outermost port"
"""The detail of a statement that has the bits of near levels that pass the port that hands elements out."""


def filled(part: LayerProblem, problem: LayerProblem, entered: Sequence[Entering] = ()) -> LayerProblem:
    """The inside with the first fills and last drains through ports that it leaves out; nothing hides these.

    A tile in a near level holds what enters the array, and takes as long at least.  What passes the near
    levels first fills the same tiles behind the array whatever the loops around these are.

    Parameters
    ----------
    part : of :func:`inside_part`, in which near levels hold whole tensors and are filled at once
    problem : whose part it is
    entered : tensors that enter the array; those that pass near levels share the outermost level's port
    """
    nest, engine, near = part.space.nest, problem.engine, near_levels(problem.engine)
    places = dict.fromkeys(near, nest.spatial[0])
    residency = {
        name: replace(own, positions={**own.positions, **places}) for name, own in nest.residency.items()
    }
    ported = nest.storing(engine, residency)
    fills = first_fills(ported, near)
    behind = range(near[-1] + 1, len(engine.levels))
    known, every = first_fills(nest, behind), first_fills(ported, behind)
    further = 0 if every is known else maximum([0, every - known])
    apart = total([part.statement.cycles, further])
    # The outermost level's port hands out what passes, and what near levels need at least.
    first = {own.tensor.name: _first_fill(part, own) for own in entered if not own.source}
    if first:
        apart = maximum([apart, *served(part, problem, first)])
    details = {FILLS: fills, APART: apart}
    return replace(part, statement=replace(part.statement, cycles=apart + fills, details=details))


def apart_from_fills(stated: Statement) -> Statement:
    """The statement of :func:`filled` with its cycles without first fills of near levels."""
    return replace(stated, cycles=stated.details[APART])


def served(
    part: LayerProblem, problem: LayerProblem, first: MappingABC[str, Expr] = MappingProxyType({})
) -> list[Expr]:
    """Cycles in which the outermost level's ports move what passes near levels, and once what these store.

    Parameters
    ----------
    part : the inside, whose own ports move near tiles, which are whole tensors there, for nothing
    problem : whose part it is
    first : elements of passing tensors, by name, that are read once more in cycles that nothing hides
    """
    operator, engine, near = problem.operator, problem.engine, near_levels(problem.engine)
    if engine.starts or operator.turns > 1:
        return []
    tensors, outermost = {tensor.name: tensor for tensor in operator.tensors}, engine.levels[0]
    reads: list[tuple[Role, Expr]] = []
    writes: list[tuple[Role, Expr]] = []
    for counted in part.statement.traffic:
        if counted.level == outermost.name:
            tensor, residency = tensors[counted.tensor], part.space.nest.residency[counted.tensor]
            passes = [not any(store in near for store in stores) for stores in residency.alternatives]
            once = touched(operator, tensor)
            read, written = (0, once) if tensor.is_output else (once, 0)
            for moved, count, least in (
                (reads, counted.reads + first.get(tensor.name, 0), read),
                (writes, counted.fills, 0),
                (writes, counted.updates, written),
            ):
                own = choose(residency.selector, [count if all_of_it else least for all_of_it in passes])
                moved.append((tensor.role, own))
    return port_times(engine, outermost, reads, writes)


def first_fills(nest: Nest, levels: Sequence[int]) -> Expr:
    """Cycles of the first fills and last drains of those levels that are double-buffered."""
    buffered = [index for index in levels if nest.engine.levels[index].double_buffered]
    return total(time for index in buffered for time in first_and_last(nest, index))


def on_port(problem: LayerProblem, nest: Nest, entered: Sequence[Entering]) -> list[tuple[Role, Expr]]:
    """Roles of passing tensors, and elements that the outermost level's port is busy with at least."""
    passing = [own for own in entered if not own.source]
    return [(own.tensor.role, least_on_port(problem, nest, own)) for own in passing]


def busy_ports(part: LayerProblem, passed: Sequence[tuple[Role, Expr]]) -> list[Expr]:
    """Cycles in which the outermost level's ports move the tensors of near levels, and what passes these.

    Parameters
    ----------
    passed : roles of passing tensors, and the elements of them that are handed out at least
    """
    reads, writes = _near_moved(part)
    return port_times(part.engine, part.engine.levels[0], [*reads, *passed], writes)


def near_bits(part: LayerProblem) -> Expr:
    """Bits of near levels' tensors that pass the outermost level's port that hands elements out."""
    engine, outermost = part.engine, part.engine.levels[0]
    reads, writes = _near_moved(part)
    moved = reads if outermost.read_bandwidth is not None else [*reads, *writes]
    return total(engine.width(outermost, role) * elements for role, elements in moved)


def port_bits(part: LayerProblem, entered: Sequence[Entering]) -> Expr:
    """Bits on the port besides reads of what passes: those of near levels, or of first fills inside.

    Parameters
    ----------
    entered : tensors that enter the array
    """
    if PORT in part.statement.details:
        return part.statement.details[PORT]
    engine, passing = part.engine, [own for own in entered if not own.source]
    return total(engine.width(engine.levels[0], own.tensor.role) * _first_fill(part, own) for own in passing)


def cycles_on_port(problem: LayerProblem, own: Entering) -> tuple[float, float]:
    """Cycles of a bit on the outermost level's port that hands elements out, and of an element's energy.

    Returns cycles per bit, and cycles per unit of the energy of reading a tensor there.
    """
    engine, outermost = problem.engine, problem.engine.levels[0]
    rate = outermost.read_bandwidth or outermost.shared_bandwidth
    if rate is None:
        return 0.0, 0.0
    per_bit = 1 / float(rate * engine.element_bits)
    return per_bit, 0.0 if own.source else per_bit * engine.width(outermost, own.tensor.role) / own.read


def _first_fill(part: LayerProblem, own: Entering) -> Expr:
    """Elements of a passing tensor in the first fill behind the array, if nothing hides that."""
    if not part.engine.levels[own.inside].double_buffered:
        return as_expr(0)
    return first_tiles(part.space.nest, own.tensor, 0, own.inside) or as_expr(0)


def _near_moved(part: LayerProblem) -> tuple[list[tuple[Role, Expr]], list[tuple[Role, Expr]]]:
    """Elements of near levels' tensors that the outermost level hands out, and that it takes, by role."""
    outermost, roles = part.engine.levels[0], {tensor.name: tensor.role for tensor in part.operator.tensors}
    near = {part.engine.levels[index].name for index in near_levels(part.engine)}
    stored = {traffic.tensor for traffic in part.statement.traffic if traffic.level in near}
    own = [
        counted
        for counted in part.statement.traffic
        if counted.level == outermost.name and counted.tensor in stored
    ]
    reads = [(roles[counted.tensor], counted.reads) for counted in own]
    return reads, [
        (roles[counted.tensor], moved) for counted in own for moved in (counted.fills, counted.updates)
    ]
