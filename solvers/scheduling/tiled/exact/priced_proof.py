"""Proofs of round plans where energy counts: energy alone, and energy times delay.

Cycles are bounded as for the makespan.  A plan that is better than the best takes fewer cycles than are
left beside the least energy, so that all stages of that proof apply; the whole statement minimises energy,
or the product.  Energy without power knows no lengths: there, tasks run one at a time (`space.in_turn`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

from ortools.sat.python import cp_model

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.scheduling.tiled.bounds import ROUNDING
from tilewright.solvers.scheduling.tiled.exact import effort
from tilewright.solvers.scheduling.tiled.exact.charges import RoundCharges
from tilewright.solvers.scheduling.tiled.exact.moved_energy import moved_energy
from tilewright.solvers.scheduling.tiled.exact.order import Order, OrderModel
from tilewright.solvers.scheduling.tiled.exact.prices import energy_units, most_energy
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
    sequence_share, polish_share = effort.CYCLES_SHARE, effort.POLISH_SHARE_PRICED
    anneals, anneal_share = effort.ANNEALS_PRICED, effort.ANNEAL_SHARE_PRICED

    def __init__(self, search: TiledSearch, space: RoundSpace) -> None:
        super().__init__(search, space)
        self.product = space.problem.objective.key_powers == (1, 1)
        self.serial = not self.product and space.problem.machine.engine.static_power == 0
        self._begun: AtomicPlan | None = None  # the best plan before sequences
        self._least, self._shared, self._lines = 0, Fraction(0), dict[Fraction, Fraction]()
        """By price of a cycle, pJ but for power and cycles at that price that no plan is below."""
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
            lambda: self.annealed(effort.EARLY_ANNEAL_SHARE),
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

    # -- energy and cycles together -------------------------------------------------------------------

    def sequenced(self) -> Order | None:
        """The same for cycles; then for energy and cycles together, at the price of an annealed plan.

        That is annealed from what was known before sequences, whose plans take few rounds at any energy.
        """
        self._begun = self.search.answer
        order = super().sequenced()
        self.annealed(effort.EARLY_ANNEAL_SHARE, effort.EARLY_ANNEALS, self._begun)
        known = self.search.evaluation
        if known is None or self.search.done:
            return order
        return self.lined(known.energy.total, known.cycles, effort.LINE_SHARE) or order

    def improved(self) -> None:
        """Better plans, annealed anew and then from the best one; and what the price of the best proves."""
        key = self.search.key
        self.annealed(effort.RESTART_SHARE, effort.RESTARTS, self._begun)
        super().improved()
        known = self.search.evaluation
        if known is not None and self.search.key != key and not self.search.done:
            self.lined(known.energy.total, known.cycles, effort.FIRST_SHARE)

    def lined(self, energy: float, cycles: int, share: float) -> Order | None:
        """Bounds on energy plus cycles times a price, and the best order that follows one of its sequences.

        Parameters
        ----------
        energy, cycles : of a plan; where a little less of one for more of the other leaves their product as
            it is, the price of a cycle is energy over cycles
        share : part of the time left that this may take
        """
        self._settle()
        units, least = self.units, self.units.least(self.instance)
        price = units.cycle + self.product * max(1, int(Fraction(energy) * units.scale / cycles))
        charges = RoundCharges(self.instance, units, price)

        def reported(parts: int) -> None:
            level = (least + Fraction(price * parts, self.instance.unit)) / units.scale
            per_cycle = Fraction(price, units.scale)
            self._lines[per_cycle] = max(level, self._lines.get(per_cycle, level))
            self.reported(self.floor(), "energy of sequences")

        most = self.instance.unit * cycles + charges.parts(units.counted(energy) - least)
        return self.followed(self.search.limits.share(share), lambda: most, reported, charges)

    def floor(self) -> int:
        """What no value is below: the least over all energies and cycles that bounds allow.

        Between two lines energy falls by a price for each cycle, so that a product is least at an end.
        """
        lines = {Fraction(0): Fraction(self.moved, self.units.scale), **self._lines}
        power = Fraction(self.units.cycle, self.units.scale)
        corners = {Fraction(self.least)}
        for price, other in combinations(lines, 2):
            corners.add((lines[price] - lines[other]) / (price - other))

        def value(cycles: Fraction) -> Fraction:
            energy = max(level - price * cycles for price, level in lines.items()) + power * cycles
            return energy * cycles if self.product else energy

        return int(self.units.scale * min(value(max(corner, Fraction(self.least))) for corner in corners))

    def limit(self, model: cp_model.CpModel, moved: cp_model.LinearExpr, cycles: cp_model.IntVar) -> None:
        """State what is known of energy and cycles together.

        Parameters
        ----------
        model : with the variables
        moved, cycles : units of energy but for power, and cycles
        """
        for price, level in self._lines.items():
            units = math.ceil(price * self.units.scale)
            model.add(moved + units * cycles >= int(level * self.units.scale))

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

    def below(self, *, begun: bool = False) -> int | None:
        """The largest value of what is still of interest; the best plan's, too, where it has ``begun``."""
        return None if self.best is None else self.best - (self.units.whole and not begun)

    def within(self, *, begun: bool) -> int:
        """Cycles of what is still of interest, in which the least energy leaves room for it."""
        below = self.below(begun=begun)
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
        return 0 if self.most < self.least else super().count

    def rounds_within(self, cycles: int) -> int:
        """The same of plans of at most so many cycles."""
        return self._rounds if self.serial else super().rounds_within(cycles)

    @property
    def _rounds(self) -> int:
        """Rounds of any plan, at most."""
        return self.instance.tasks + self.space.idle + 1

    # -- statements ------------------------------------------------------------------------------------

    def begun(self, plan: Plan) -> Plan:
        """Its tasks in turn, where lengths do not count."""
        return in_turn(plan, self.instance.tasks, self.instance.engines) if self.serial else plan

    def statement(
        self, given: Given = FREE, most: int | None = None, *, begun: bool = False
    ) -> PlanStatement:
        """The statement of plans of interest, which minimises their energy or its product with cycles."""
        self._settle()
        statement = super().statement(given, most, begun=begun)
        rounds, moved = statement.rounds, moved_energy(statement, self.units)
        below = self.below(begun=begun)
        self.minimise(statement.model, rounds.cycles, rounds.longest, statement.runs, below, moved)
        return statement

    def order_model(self, count: int, most: int) -> OrderModel:
        """The relaxation with an engine for each task, which minimises what follows from both."""
        self._settle()
        model = super().order_model(count, most)
        rounds = model.rounds
        self.minimise(model.model, rounds.cycles, rounds.longest, model.on_engines(), self.below())
        return model

    def minimise(
        self,
        model: cp_model.CpModel,
        cycles: cp_model.IntVar,
        longest: int,
        runs: Runs,
        below: int | None,
        moved: cp_model.LinearExpr | None = None,
    ) -> None:
        """State the objective: energy that follows from places, and from movements where they are known.

        Parameters
        ----------
        model, cycles : of a statement
        longest : parts of a cycle that it may take
        runs : where and when tasks may run
        below : the largest value of interest, if any is known
        moved : units that its movements take
        """
        longest //= self.instance.unit
        power = self.units.cycle  # none where lengths are not stated
        least = self.energy(self.least)
        if below is None:
            most = (
                int(most_energy(self.instance, self._rounds) * self.units.scale) + self.units.cycle * longest
            )
        else:
            most = below // max(1, self.least) if self.product else below
        energy = model.new_int_var(least, max(least, most), "energy")
        self.limit(model, energy - power * cycles, cycles)
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
        self.raise_value(self.floor(), source)

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
