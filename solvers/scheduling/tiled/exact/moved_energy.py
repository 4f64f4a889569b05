"""Energy that movements take in a statement of round plans."""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model

from tilewright.solvers.scheduling.tiled.exact.prices import EnergyUnits
from tilewright.solvers.scheduling.tiled.exact.variables import Literal, PlanStatement


def moved_energy(statement: PlanStatement, units: EnergyUnits) -> cp_model.LinearExpr:
    """Units that movements take: a multicast reads its source, and passes a link, once for all targets."""
    instance = statement.instance
    net, size = instance.net, instance.size
    users: dict[tuple[int, int, int, int], list[Literal]] = defaultdict(list)
    terms: list[tuple[Literal, int]] = []
    for (block, source, e, r), move in statement.moves.items():
        for link in net.route(source, e).tolist():
            if link >= net.routers:
                users[block, source, link, r].append(move)
        users[block, source, -1, r].append(move)
        terms.append((move, size[block] * units.write))
    for (block, source, link, _), moves in users.items():
        own = units.read if source < instance.engines else units.dram
        price = units.hop if link >= 0 else own
        terms.append((_any_of(statement, moves), size[block] * price))
    for (task, e, port, _), write in statement.written.items():
        way = net.distance(e, port) * units.hop
        terms.append((write, size[task] * (units.read + units.dram + way)))
    return cp_model.LinearExpr.weighted_sum([literal for literal, _ in terms], [price for _, price in terms])


def _any_of(statement: PlanStatement, literals: list[Literal]) -> Literal:
    """A literal that each of some implies."""
    if len(literals) == 1:
        return literals[0]
    either = statement.model.new_bool_var("")
    for literal in literals:
        statement.model.add_implication(literal, either)
    return either
