"""Statements of what is still of interest of given atoms, their runs, and what is proven when they end."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.solvers.cpsat_run import CpSatRun, Values
from tilewright.solvers.scheduling.tiled.exact.decode import plan_of
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace
from tilewright.solvers.scheduling.tiled.exact.statement import plan_statement
from tilewright.solvers.scheduling.tiled.exact.variables import FREE, Given, PlanStatement


class StatedPlans:
    """Statements of round plans that are still of interest, and what their ends prove.

    Parameters
    ----------
    search : its problem is the space

    Attributes
    ----------
    given : what is given of all plans of the space
    priced, serial : whether energy counts; whether one task runs at a time, and lengths do not count
    """

    given = FREE
    priced = serial = False

    def __init__(self, search: TiledSearch, space: RoundSpace) -> None:
        self.search, self.space = search, space
        self.instance = RoundInstance(space.dag, space.problem.machine)

    refuted = False
    """Whether a model without a solution has shown that there is nothing better than the best plan."""

    # -- limits of the statement ---------------------------------------------------------------------

    @property
    def most(self) -> int:
        """Cycles of what is still of interest."""
        return self.within(begun=False)

    def within(self, *, begun: bool) -> int:
        """Cycles fewer than the best plan's, or as many where it has ``begun``; or all that may be needed."""
        key = self.search.key
        return self.longest if key is None else int(key) - (not begun)

    @property
    def longest(self) -> int:
        """Cycles that no best plan exceeds: every round with its longest task and all data everywhere."""
        instance = self.instance
        slowest = min(rate for rate in (instance.dram_rate, *instance.link_rates) if rate is not None)
        copies = instance.engines + 1
        moved = -(-copies * sum(instance.size) // slowest)
        hops = instance.hop_cycles * len(instance.net.rates)
        return (instance.tasks + self.space.idle + 1) * (max(instance.cycles) + 2 * int(moved) + hops + 1)

    @property
    def least(self) -> int:
        """The bound so far."""
        return 0 if self.search.bound is None else int(self.search.bound)

    @property
    def count(self) -> int:
        """Rounds that a plan of interest may have, with one for the last write-backs; 0 where none can be."""
        return self.rounds_within(self.most)

    def rounds_within(self, cycles: int) -> int:
        """Rounds of plans of at most so many cycles, and one for the last write-backs; 0 if none."""
        rounds = self.instance.most_rounds(cycles)
        return rounds and rounds + self.space.idle + 1

    @property
    def decisions(self) -> int:
        """Movements that the whole statement decides, at most."""
        instance = self.instance
        return (
            len(instance.readers) * instance.engines * (instance.engines + len(instance.ports)) * self.count
        )

    # -- statements ----------------------------------------------------------------------------------

    def begun(self, plan: Plan) -> Plan:
        """A plan as the statement has it."""
        return plan

    def statement(
        self, given: Given = FREE, most: int | None = None, *, begun: bool = False
    ) -> PlanStatement:
        """The statement of what is still of interest.

        Parameters
        ----------
        given : what of the plans is given
        most : cycles; by default those of what is still of interest
        begun : whether the best plan is of interest, too, so that solvers can improve it
        """
        if most is None:
            most = self.within(begun=begun)
        return plan_statement(
            self.instance,
            self.rounds_within(most) if given.order is None else max(given.order) + 2,
            self.space.idle,
            self.least,
            most,
            given=given,
            priced=self.priced,
            serial=self.serial,
            check=self.search.limits.check,
        )

    def start(
        self, statement: PlanStatement, source: str, limits: Limits, on_bound: Callable[[int], None] | None
    ) -> CpSatRun:
        """A run that offers what it finds.

        Parameters
        ----------
        statement : the model
        source : what the trace calls its solutions
        limits : of the run
        on_bound : called with every better bound
        """

        def on_solution(values: Values) -> None:
            self.search.confirm(AtomicPlan(self.space.dag, plan_of(statement, values)), source)

        return CpSatRun(statement.model, limits, lambda: self.search.done, on_solution, on_bound)

    def closed(
        self,
        status: cp_model.CpSolverStatus | None = None,
        run: CpSatRun | None = None,
        source: str = "rounds",
        raised: Callable[[int, str], None] | None = None,
    ) -> bool:
        """Whether nothing better than the best plan is left; raises the bound accordingly.

        Parameters
        ----------
        status, run : of a statement that has ended, if any
        source : what the trace calls its bound
        raised : takes the bound of its objective; by default that is cycles
        """
        if run is not None:
            self.search.doubt(run.doubt)
        if status is not None and run is not None and status == cp_model.OPTIMAL:
            (raised or self.raise_bound)(run.bound, source)
            return self.search.done
        if status == cp_model.INFEASIBLE or (status is None and not self.count):
            self.refuted = True
            if self.search.key is not None:
                self.search.raise_bound(self.search.key, source)
            return True
        return False

    def raise_bound(self, cycles: int, source: str) -> None:
        """Report a bound on round plans of these atoms."""
        self.search.raise_bound(Fraction(cycles), source)

    def raise_value(self, value: int, source: str) -> None:
        """Report a bound on the whole statement's objective: cycles."""
        self.raise_bound(value, source)

    def reported(self, value: int, source: str) -> None:
        """Take a bound of a statement that is still being solved."""
        self.raise_value(value, source)
