"""Energy that follows from places alone: what must reach which engines, whenever and on whatever way.

With S(b) the engines that run a reader of block b:

- data in DRAM enter the buffer of each engine of S(b).  Every router that they reach but one has a link by
  which they come, except where they come from DRAM once more; and the way to the farthest engine of S(b) has
  as many links as the nearest port is away;
- a result is where it was made.  Every other engine that reads it receives it, or the part that it reads, by
  a link out of a buffer, or from DRAM; a result that is there serves for all its parts;
- an output passes the links from its engine to the nearest port, some of which copies of it pass that other
  engines receive, which may write it back;
- tasks of one round are on different engines, so that the readers among them count one by one.

Without rounds an engine still runs one task at a time, so that within some cycles it runs no more than these
(`engines_within`): few cycles need many engines, and these copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.prices import EnergyUnits
from tilewright.solvers.scheduling.tiled.exact.variables import Literal

Runs = Mapping[tuple[int, int, int], Literal]
"""(task, engine, round)"""


def energy_of_places(
    model: cp_model.CpModel, instance: RoundInstance, runs: Runs, units: EnergyUnits
) -> cp_model.LinearExpr:
    """Units of energy that every plan with these places takes at least, but for power.

    Parameters
    ----------
    model : gets the variables and constraints that this needs
    instance, units : the atoms, and what they and their movements cost
    runs : where and when each task may run
    """
    return _Places(model, instance, runs, units).energy()


def engines_within(model: cp_model.CpModel, instance: RoundInstance, cycles: int) -> Runs:
    """An engine for every task, in a round of its own, of which none runs tasks for more than some cycles.

    Parameters
    ----------
    model : gets the variables and constraints that this needs
    instance : the atoms
    cycles : that a plan takes at most
    """
    engines, taken = range(instance.engines), instance.dag.cycles.tolist()
    runs = {(task, e, task): model.new_bool_var("") for task in range(instance.tasks) for e in engines}
    for task in range(instance.tasks):
        model.add_exactly_one(runs[task, e, task] for e in engines)
    for e in engines:
        model.add(sum(taken[task] * runs[task, e, task] for task in range(instance.tasks)) <= cycles)
    return runs


class _Places:
    def __init__(
        self, model: cp_model.CpModel, instance: RoundInstance, runs: Runs, units: EnergyUnits
    ) -> None:
        self.model, self.instance, self.runs, self.units = model, instance, runs, units
        self.link = min(units.hop, units.dram)
        self.sent = min(units.read, units.dram - self.link)
        self.away = [
            min(instance.net.distance(port, e) for port in instance.ports) for e in range(instance.engines)
        ]
        self.terms: list[tuple[cp_model.IntVar, int]] = []
        of: dict[tuple[int, int], list[Literal]] = {}
        self.in_round: dict[tuple[int, int], list[Literal]] = {}
        for (task, e, r), run in runs.items():
            of.setdefault((task, e), []).append(run)
            self.in_round.setdefault((task, r), []).append(run)
        self.rounds_of: dict[int, list[int]] = {}
        for task, r in self.in_round:
            self.rounds_of.setdefault(task, []).append(r)
        self.on = {place: self._any(literals) for place, literals in of.items()}

    def _any(self, literals: list[Literal]) -> Literal:
        """A literal that is the sum of some of which one is true at most."""
        either = self.model.new_bool_var("")
        self.model.add(sum(literals) == either)
        return either

    def energy(self) -> cp_model.LinearExpr:
        """Atoms, what comes from DRAM, results on other engines, and outputs."""
        instance, units = self.instance, self.units
        constant = units.atoms
        for block in instance.readers:
            if instance.parent[block] < 0:
                constant += instance.size[block] * units.dram
                self._from_dram(block)
        for task in range(instance.tasks):
            copies = self._result(task)
            if instance.outputs[task]:
                constant += instance.size[task] * (units.dram + units.read)
                self._leaves(task, copies)
        variables, prices = [variable for variable, _ in self.terms], [price for _, price in self.terms]
        return cp_model.LinearExpr.weighted_sum(variables, prices) + constant

    def _charge(self, variable: cp_model.IntVar, block: int, price: int) -> None:
        """Count so many units a byte of a block, times a variable."""
        self.terms.append((variable, self.instance.size[block] * price))

    def _from_dram(self, block: int) -> None:
        """Data in DRAM: written into every buffer that needs them, over links between these."""
        instance, model, readers = self.instance, self.model, self.instance.readers[block]
        there: list[Literal] = []
        links = model.new_int_var(0, instance.engines + max(self.away), "")
        for e in range(instance.engines):
            here = [self.on[task, e] for task in readers if (task, e) in self.on]
            if not here:
                continue
            needed = model.new_bool_var("")
            there.append(needed)
            for literal in here:
                model.add_implication(literal, needed)
            if self.away[e]:
                model.add(links >= self.away[e] * needed)
            self._charge(needed, block, self.units.write)
        model.add(links >= sum(there) - 1)
        self._charge(links, block, self.link)
        self._apart(readers, there, 0)

    def _leaves(self, task: int, copies: list[Literal]) -> None:
        """Links to the nearest port: of those that its copies pass, one each is counted already."""
        away = [
            (self.away[e], self.on[task, e]) for e in range(self.instance.engines) if (task, e) in self.on
        ]
        links = self.model.new_int_var(0, max(self.away), "")
        self.model.add(links >= sum(far * on for far, on in away) - sum(copies))
        self._charge(links, task, self.units.hop)

    def _result(self, task: int) -> list[Literal]:
        """Copies of a result, or of its parts, on engines that have not made it; those of the whole."""
        instance, model = self.instance, self.model
        parts = [block for block in instance.readers if instance.parent[block] == task and block != task]
        wholes: list[Literal] = []
        of_parts: dict[int, list[Literal]] = {part: [] for part in parts}
        for e in range(instance.engines):
            own = [self.on[task, e]] if (task, e) in self.on else []
            whole = model.new_bool_var("")
            wholes.append(whole)
            for block in (task, *parts):
                here = [self.on[t, e] for t in instance.readers.get(block, ()) if (t, e) in self.on]
                ways = [whole, *own]
                if here and block != task:
                    ways.append(model.new_bool_var(""))
                    of_parts[block].append(ways[-1])
                for literal in here:
                    model.add_bool_or([*ways, ~literal])
        for block, copies in ((task, wholes), *of_parts.items()):
            some = model.new_bool_var("")
            for literal in copies:
                model.add_implication(literal, some)
                self._charge(literal, block, self.units.write + self.link)
            self._charge(some, block, self.sent)
            served = copies if block == task else [*copies, *wholes]
            self._apart(instance.readers.get(block, ()), served, 1)
        return wholes if instance.after[task] else []

    def _apart(self, readers: Sequence[int], copies: list[Literal], made: int) -> None:
        """The readers of one round need a copy each, but for so many that are where it was made."""
        rounds: dict[int, list[Literal]] = {}
        for task in readers:
            for r in self.rounds_of[task]:
                rounds.setdefault(r, []).extend(self.in_round[task, r])
        for literals in rounds.values():
            self.model.add(sum(literals) <= sum(copies) + made)
