"""The proof of the best round plan of given atoms, stage by stage.

1. Shortest sequences of rounds (`sequences`) give a bound, and how many atoms of which kind a round runs.
2. A relaxation without places (`OrderModel`) gives orders close to the bound, and a better bound.
3. Places, movements and residency of an order (`plan_statement` with every round fixed) give a plan.
4. Annealing, and windows of rounds that are opened, improve the best plan.
5. The whole statement closes what is left, within the time limit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.exact import effort
from tilewright.solvers.scheduling.tiled.exact.annealing import annealed_together
from tilewright.solvers.scheduling.tiled.exact.charges import RoundCharges
from tilewright.solvers.scheduling.tiled.exact.counts import Counts
from tilewright.solvers.scheduling.tiled.exact.decode import hint
from tilewright.solvers.scheduling.tiled.exact.incumbent import placed_plans
from tilewright.solvers.scheduling.tiled.exact.order import Order, OrderModel
from tilewright.solvers.scheduling.tiled.exact.sequences import RoundSequence, searched
from tilewright.solvers.scheduling.tiled.exact.stated_plans import StatedPlans
from tilewright.solvers.scheduling.tiled.exact.variables import Given


class RoundProof(StatedPlans):
    """Proves the best round plan of given atoms."""

    def run(self) -> Outcome:
        """Close the gap, or as much of it as limits allow; the message names the space."""
        try:
            return self.pursued()
        except LimitReachedError:  # it struck while a model was stated: what was found before stands
            return self.outcome()

    def pursued(self) -> Outcome:
        """Bounds, the relaxation, the whole statement; `LimitReachedError` where a limit strikes between."""
        search, instance = self.search, self.instance
        self.raise_bound(dag_bounds(instance.dag, instance.machine).cycles, "these atoms")
        if not search.done:
            self.relaxed()
        if search.done or self.refuted:
            return self.outcome()
        if self.decisions > effort.MOST_DECISIONS:
            return Outcome(
                message=f"{self.space.space}; stated as a whole only up to "
                f"{effort.MOST_DECISIONS:,} movements, here {self.decisions:,}: "
                "the bound is that of a relaxation"
            )
        self.whole(self.search.limits)
        return self.outcome()

    def outcome(self) -> Outcome:
        """The space that the claim is about; that it has no plan, where that is proven."""
        if self.search.key is None and self.refuted:
            return Outcome(True, f"no plan in the space: {self.space.space}; buffers are too small for it")
        return Outcome(message=self.space.space)

    # -- stages --------------------------------------------------------------------------------------

    turns = 0
    """Annealings so far."""

    def annealed(self, share: float, number: int = 1, begun: AtomicPlan | None = None) -> None:
        """Improve a plan that is known, so that less is left to be stated.

        Parameters
        ----------
        share : part of the time left that all annealings may take
        number : of annealings of equal time, each of which draws anew
        begun : the plan that each begins with; by default the best one then
        """
        within = self.search.within(self.search.limits.share(share))
        for left in range(number, 0, -1):
            given = begun or self.search.answer
            if given is not None and not self.search.done and self.instance.tasks >= effort.ANNEAL_FROM:
                annealed_together(within, given, 1 / left, self.turns, effort.TRIALS)
                self.turns += 1

    sequence_share, polish_share = effort.SEQUENCE_SHARE, effort.POLISH_SHARE
    """Parts of the time left that sequences may take for cycles alone, and windows of the best plan."""

    anneals, anneal_share = effort.ANNEALS, effort.ANNEAL_SHARE
    """Annealings in turn, and the part of the time left that they may take."""

    def sequenced(self) -> Order | None:
        """Bounds of sequences of rounds, and the best order that follows one."""
        return self.followed(
            self.search.limits.share(self.sequence_share),
            lambda: self.most,
            lambda cycles: self.raise_bound(cycles, "sequences"),
        )

    def followed(
        self,
        limits: Limits,
        most: Callable[[], int],
        reported: Callable[[int], None],
        charges: RoundCharges | None = None,
    ) -> Order | None:
        """The best order that follows a sequence of rounds, in finer and finer detail.

        Parameters
        ----------
        limits : of all searches, and of the orders
        most, reported, charges : of each, as of `searched`
        """
        best, stated = None, set[object]()
        for together, ways in effort.SEQUENCES:
            classes = together(self.instance)
            if (classes, ways) in stated:
                continue
            stated.add((classes, ways))
            if self.search.done or limits.expired or not self.count:
                break
            finest = (together, ways) == effort.SEQUENCES[-1] and charges is None
            mine = limits.share(1.0 if finest else effort.FINER_SHARE)
            sequence = searched(
                Counts(self.instance, classes, ways),
                most(),
                lambda share=mine: self.search.done or share.expired,  # type: ignore[misc]
                reported,
                steady=self.space.idle == 0,
                charges=charges,
            )
            if sequence.rounds is None or self.search.done:
                continue
            self.fewest = len(sequence.rounds)
            order = self.ordered(self.fewest + 1, limits.share(effort.FIRST_SHARE), False, None, sequence)
            if order is not None and (best is None or order.cycles < best.cycles):
                best = order
                self.offer_placed(order)
                if order.cycles <= self.least:
                    break
        return best

    fewest = 0
    """Rounds of the best sequence."""

    def relaxed(self) -> None:
        """Orders of the best sequence, of all rounds, and of few rounds close to the bound; plans of each."""
        orders = [self.sequenced()]
        if self.search.done or self.closed():
            return
        large = self.decisions > effort.EARLY_DECISIONS
        if self.priced and large:  # other orders say little of energy
            self.placed_all(orders)
            orders.clear()
            self.improved()
        orders.append(self.ordered(self.count, self.search.limits.share(effort.FIRST_SHARE), True))
        if self.refuted:
            return
        self.placed_all(orders)
        if not large and not self.search.done:
            self.whole(self.search.limits.share(effort.EARLY_SHARE))
            if self.refuted:
                return
        self.targeted(effort.TARGETS[0], effort.TARGET_SHARE)
        if not (self.priced and large):
            self.improved()
        for target in effort.TARGETS[1:]:
            self.targeted(target, effort.FIRST_SHARE)
        if self.search.done or self.closed():
            return
        order = self.ordered(self.count, self.search.limits.share(effort.ORDERS_SHARE), True)
        if order is not None and not self.refuted:
            self.placed(order)

    def placed_all(self, orders: list[Order | None]) -> None:
        """Offer plans of all orders that there are."""
        for order in orders:
            if order is not None:
                self.placed(order)

    def improved(self) -> None:
        """Better plans close to the best one, by annealing and by windows."""
        self.annealed(self.anneal_share, self.anneals)
        self.polished()

    def targeted(self, part: Fraction, share: float) -> None:
        """Seek an order of few rounds that leaves no more than a part of the gap, and plans of it."""
        if self.search.done or self.closed():
            return
        few = self.fewest or -(-self.instance.tasks // self.instance.engines) + self.space.idle
        known = self.search.key is not None
        most = self.least + int(part * (self.most - self.least)) if known else None
        order = self.ordered(
            min(few + effort.SPARE + 1, self.count), self.search.limits.share(share), False, most
        )
        if order is not None:
            self.placed(order)

    def ordered(
        self,
        count: int,
        limits: Limits,
        whole: bool,
        most: int | None = None,
        sequence: RoundSequence | None = None,
    ) -> Order | None:
        """The best order in so many rounds that the relaxation finds; a bound where no plan has more.

        Parameters
        ----------
        whole : whether every plan of interest has as many rounds
        most : cycles, fewer than those of interest
        sequence : what each round runs, where it is given
        """
        longest = self.most if most is None else most
        if longest < self.least:
            return None
        model = self.order_model(count, longest)
        if sequence is not None:
            model.follow(sequence)
        elif self.search.answer is not None and most is None:
            model.hint(self.search.answer.plan.first.tolist())
        on_bound = (lambda bound: self.reported(bound, "orders")) if whole else None
        run = CpSatRun(model.model, limits, lambda: self.search.done, None, on_bound)
        status = run.solve()
        if whole and self.closed(status, run, "orders", self.raise_value):
            return None
        return (
            Order(model.order(run.solver), run.solver.value(model.rounds.cycles), model.engines(run.solver))
            if run.has_solution
            else None
        )

    def order_model(self, count: int, most: int) -> OrderModel:
        """The relaxation in so many rounds and cycles."""
        check = self.search.limits.check
        return OrderModel(self.instance, count, self.space.idle, self.least, most, check=check)

    def offer_placed(self, order: Order) -> None:
        """Offer plans of one order on its own engines, and by heuristics for places."""
        dag, machine = self.space.dag, self.space.problem.machine
        step = np.array(order.rounds, dtype=np.int32)
        own = None if order.engines is None else np.array(order.engines, dtype=np.int32)
        for plan in placed_plans(dag, machine, step, own):
            self.search.offer(AtomicPlan(dag, plan), "orders, placed", Origin.HEURISTIC)

    def placed(self, order: Order) -> None:
        """Offer plans of one order: by heuristics for places, then by the statement with the order given."""
        search = self.search
        self.offer_placed(order)
        trials: list[tuple[int, list[int] | None]] = [(order.cycles, None), (self.most, None)]
        if order.engines is not None:
            trials.insert(0, (self.most, order.engines))
        for most, places in trials:
            if search.done or self.most < max(self.least, order.cycles):
                return
            statement = self.statement(Given(order.rounds, places), min(most, self.most))
            share = effort.CLOSING_SHARE if order.cycles <= self.least else effort.FIXED_SHARE
            run = self.start(statement, "places", search.limits.share(share), None)
            run.solve()

    def polished(self) -> None:
        """Open the best plan's rounds a few at a time, all others keeping their atoms and engines, until no
        window of so many rounds holds anything better; then open more."""
        search = self.search
        limits = search.limits.share(self.polish_share)
        chance, width, left = random.Random(search.limits.seed), effort.FEWEST_OPEN, list[int]()
        while search.answer is not None and not (search.done or limits.expired or self.closed()):
            plan, key = self.begun(search.answer.plan), search.key
            rounds = int(plan.first.max()) + 1
            if not left:
                left = chance.sample(range(max(1, rounds - width + 1)), k=max(1, rounds - width + 1))
            begin = left.pop()
            open_rounds = range(begin, min(begin + width, rounds))
            given = Given(plan.first.tolist(), plan.engine.tolist(), open_rounds)
            statement = self.statement(given, begun=True)
            hint(statement, plan)
            self.start(statement, "windows", limits.share(1.0, effort.LONGEST_WINDOW), None).solve()
            if search.key != key:
                left = []
            elif not left:
                width += 1
                if width > rounds:
                    return

    def whole(self, limits: Limits) -> None:
        """Solve the whole statement within limits."""
        if self.closed():
            return
        statement = self.statement(self.given, begun=True)
        if self.search.answer is not None:
            hint(statement, self.begun(self.search.answer.plan))
        run = self.start(statement, "plans", limits, lambda bound: self.reported(bound, "plans"))
        self.closed(run.solve(), run, "plans", self.raise_value)
