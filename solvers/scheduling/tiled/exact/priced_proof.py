"""Proofs of round plans where energy counts: energy alone, and energy times delay.

Cycles are bounded as for the makespan.  A plan that is better than the best takes fewer cycles than are
left beside the least energy, so that all stages of that proof apply; the whole statement minimises energy,
or the product.  Energy without power knows no lengths: there, tasks run one at a time (`space.in_turn`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ortools.sat.python import cp_model

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.scheduling.tiled.bounds import ROUNDING
from tilewright.solvers.scheduling.tiled.exact import effort
from tilewright.solvers.scheduling.tiled.exact.order import OrderModel
from tilewright.solvers.scheduling.tiled.exact.prices import energy_units, most_energy, moved_energy
from tilewright.solvers.scheduling.tiled.exact.proof import RoundProof
from tilewright.solvers.scheduling.tiled.exact.sharing import Runs, energy_of_places, engines_within
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, in_turn
from tilewright.solvers.scheduling.tiled.exact.variables import FREE, Given, PlanStatement

STATED = ((0, 1), (1, 0), (1, 1))
"""Powers of energy and cycles that can be proven."""

FINEST = Fraction(1, 10**5)
"""Part of a bound by which the next must be better to be told while a statement is solved."""


class PricedProof(RoundProof):
    """Proves the round plan of least energy, or of least energy times cycles."""

    priced = True

    def __init__(self, search: TiledSearch, space: RoundSpace) -> None:
        super().__init__(search, space)
        self.product = space.problem.objective.key_powers == (1, 1)
        self.serial = not self.product and space.problem.machine.engine.static_power == 0
        self._least, self._shared = 0, Fraction(0)
        self._settle()

    def _settle(self) -> None:
        """Count in the finest units that the best plan allows; a model keeps those it was stated in."""
        machine, known = self.space.problem.machine, self.search.evaluation
        if known is not None:
            energy, cycles = Fraction(known.energy.total), known.cycles
        else:
            cycles = self.longest
            power = Fraction(machine.engine.static_power * machine.engines)
            energy = most_energy(self.instance, self._rounds) + power * cycles
        self.units = energy_units(self.instance, energy, cycles if self.product else 1)
        self.moved = max(self.units.least(self.instance), int(self._shared * self.units.scale))

    def pursued(self) -> Outcome:
        """Where lengths do not count, the whole statement at once, and windows of the best plan."""
        if not self.serial:
            self.share()
            return super().pursued()
        self.raise_bound(0, "these atoms")
        early = self.search.limits.share(effort.EARLY_SHARE)
        steps: tuple[Callable[[], None], ...] = (
            lambda: self.whole(early),
            self.climbed,
            self.polished,
            lambda: self.whole(self.search.limits),
        )
        for step in steps:
            if not self.search.done and not self.refuted:
                step()
        return self.outcome()

    def share(self) -> None:
        """Raise the least energy to that of engines that run all tasks within the cycles of interest: no
        better plan takes more of these.
        """
        if self.search.key is None or self.search.done:
            return
        model, limits = cp_model.CpModel(), self.search.limits.share(effort.LOADS_SHARE, effort.LONGEST_LOADS)
        runs = engines_within(model, self.instance, self.most)
        model.minimize(energy_of_places(model, self.instance, runs, self.units))
        run = CpSatRun(model, limits, lambda: self.search.done)
        if not self.closed(run.solve(), run, "loads", lambda units, source: None):
            self._shared = Fraction(run.bound, self.units.scale)
            self._settle()

    # -- energies and cycles of interest ---------------------------------------------------------------

    def value(self, energy: int, cycles: int) -> int:
        """What is minimised, of units of energy and cycles."""
        return energy * cycles if self.product else energy

    def energy(self, cycles: int) -> int:
        """Units that any plan of so many cycles takes."""
        return self.moved + self.units.cycle * cycles

    @property
    def best(self) -> int | None:
        """Units, or units times cycles, of the best plan; more than those where prices were rounded."""
        plan = self.search.evaluation
        if plan is None:
            return None
        return self.value(self.units.counted(plan.energy.total) + (not self.units.whole), plan.cycles)

    @property
    def below(self) -> int | None:
        """The largest value of what is still of interest."""
        return None if self.best is None else self.best - self.units.whole

    @property
    def most(self) -> int:
        """Cycles of what is still of interest."""
        below = self.below
        if self.serial or below is None:
            return self.longest
        low, high = 0, self.longest
        while low < high:
            middle = -(-(low + high) // 2)
            low, high = (
                (middle, high) if self.value(self.energy(middle), middle) <= below else (low, middle - 1)
            )
        return low

    @property
    def least(self) -> int:
        """The bound on cycles so far."""
        return self._least

    @property
    def count(self) -> int:
        """Rounds of plans of interest; those of one task each where lengths do not count."""
        if self.most < self.least:
            return 0
        return self._rounds if self.serial else super().count

    @property
    def _rounds(self) -> int:
        """Rounds of any plan, at most."""
        return self.instance.tasks + self.space.idle + 1

    # -- statements ------------------------------------------------------------------------------------

    def begun(self, plan: Plan) -> Plan:
        """Its tasks in turn, where lengths do not count."""
        return in_turn(plan, self.instance.tasks, self.instance.engines) if self.serial else plan

    def statement(self, given: Given = FREE, most: int | None = None) -> PlanStatement:
        """The statement of plans of interest, which minimises their energy or its product with cycles."""
        self._settle()
        statement = super().statement(given, most)
        rounds, moved = statement.rounds, moved_energy(statement, self.units)
        self.minimise(statement.model, rounds.cycles, rounds.longest, statement.runs, moved)
        return statement

    def order_model(self, count: int, most: int) -> OrderModel:
        """The relaxation with an engine for each task, which minimises what follows from both."""
        self._settle()
        model = super().order_model(count, most)
        self.minimise(model.model, model.rounds.cycles, model.rounds.longest, model.on_engines())
        return model

    def minimise(
        self,
        model: cp_model.CpModel,
        cycles: cp_model.IntVar,
        longest: int,
        runs: Runs,
        moved: cp_model.LinearExpr | None = None,
    ) -> None:
        """State the objective: energy that follows from places, and from movements where they are known.

        Parameters
        ----------
        model, cycles : of a statement
        longest : parts of a cycle that it may take
        runs : where and when tasks may run
        moved : units that its movements take
        """
        below, longest = self.below, longest // self.instance.unit
        power = self.units.cycle  # none where lengths are not stated
        least = self.energy(self.least)
        if below is None:
            most = (
                int(most_energy(self.instance, self._rounds) * self.units.scale) + self.units.cycle * longest
            )
        else:
            most = below // max(1, self.least) if self.product else below
        energy = model.new_int_var(least, max(least, most), "energy")
        model.add(energy >= energy_of_places(model, self.instance, runs, self.units) + power * cycles)
        if moved is not None:
            model.add(energy >= moved + power * cycles + self.units.atoms)
        if not self.product:
            model.minimize(energy)
            return
        lowest, highest = self.value(least, self.least), most * longest if below is None else below
        value = model.new_int_var(lowest, max(lowest, highest), "value")
        model.add_multiplication_equality(value, [energy, cycles])
        model.minimize(value)

    # -- bounds ----------------------------------------------------------------------------------------

    def raise_bound(self, cycles: int, source: str) -> None:
        """Report a bound on cycles, and with it on what is minimised."""
        self._least = max(self._least, cycles)
        self.raise_value(self.value(self.energy(self._least), self._least), source)

    def raise_value(self, value: int, source: str) -> None:
        """Report a bound in units; where nothing is rounded, one that the best plan meets is its key."""
        best, key = self.best, self.search.key
        if self.units.whole and key is not None and best is not None and value >= best:
            self.search.raise_bound(key, source)
        else:
            self.search.raise_bound(Fraction(value, self.units.scale) * (1 - ROUNDING), source)

    def reported(self, value: int, source: str) -> None:
        """Take a bound that is better by more than a trace can show."""
        shown = Fraction(value, self.units.scale)
        if self.search.bound is None or shown > self.search.bound * (1 + FINEST):
            self.raise_value(value, source)


def proof_of(search: TiledSearch, space: RoundSpace) -> RoundProof:
    """The proof for an objective of `STATED`."""
    timed = space.problem.objective.key_powers == (0, 1)
    return (RoundProof if timed else PricedProof)(search, space)
