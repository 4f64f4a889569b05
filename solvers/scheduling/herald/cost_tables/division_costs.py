"""Costs of layers on every division of a chip: those of one division first, then variant by variant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.herald.codesign import Division
from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.hardware.scheduling.herald.system import System
from tilewright.solvers.scheduling.herald.cost_tables.build import problem_from_table, workload_operators
from tilewright.solvers.scheduling.herald.cost_tables.costs import CostTable, cost_table
from tilewright.workloads.scheduling.workload import Workload


class DivisionCosts:
    """States the scheduling problem on a division, with costs that are computed when they are needed.

    Parameters
    ----------
    workload, systems : what runs, and on which system every division is
    first : whose costs are known before those of others
    metric : by which mappings are chosen
    limits : of the whole search; every variant has its share of what is left
    folder : of the cost tables
    reported, note : called with numbers of costs, and of what is known
    """

    def __init__(
        self,
        workload: Workload,
        systems: Mapping[Division, System],
        first: Division,
        metric: str,
        limits: Limits,
        folder: Path | None,
        reported: Callable[[int, int], None],
        note: Callable[[str], None],
    ) -> None:
        self._workload, self._systems, self._metric = workload, systems, metric
        self._limits, self._folder = limits, folder
        self._reported, self._note = reported, note
        self._operators = workload_operators(workload)
        self._waiting = list(dict.fromkeys(division.place for division in systems))
        self._variants = len(self._waiting)
        self._first = first, self._earliest(first)
        self._tables: dict[tuple[int, ...], CostTable] = {}
        self._missed: dict[tuple[int, ...], Division] = {}

    def problem(self, division: Division) -> SchedulingProblem:
        """The problem on a division.

        Raises
        ------
        LimitReachedError : where a limit strikes before the costs of its variant are known.  The division
            for which it first struck may ask again, others of the variant are refused until then.
        """
        return self._stated(division, self._table(division))

    def counted_again(self, division: Division, limits: Limits) -> SchedulingProblem:
        """The problem with the costs of dataflow styles counted again from their mappings.

        Those of machine files are always counted.

        Raises
        ------
        LimitReachedError : where a limit struck
        """
        system, table = self._systems[division], self._table(division)
        styles = tuple(sub for sub in system.subs if sub.own is None)
        if styles:
            only = [replace(system, subs=styles)]
            table = table.updated(
                cost_table(self._operators, only, limits, self._folder, metric=self._metric)
            )
        return self._stated(division, table)

    def _earliest(self, division: Division) -> CostTable:
        """Costs on one division, in the share of a variant where that suffices."""
        system = self._systems[division]
        which = f" of {system.name}"
        try:
            return self._computed([system], self._limits.share(1 / self._variants), which)
        except LimitReachedError:
            if self._limits.expired:
                raise
            return self._computed([system], self._limits, which)

    def _stated(self, division: Division, table: CostTable) -> SchedulingProblem:
        return problem_from_table(self._workload, self._systems[division], self._metric, table)

    def _table(self, division: Division) -> CostTable:
        """Costs on all partitions of a division's variant, or on the first division alone."""
        first, table = self._first
        if division == first:
            return table
        place = division.place
        if place not in self._tables:
            if self._missed.setdefault(place, division) != division:
                raise LimitReachedError
            limits = self._limits.share(1 / len(self._waiting))
            self._waiting.remove(place)
            self._waiting.append(place)  # where its share is too short, it is asked for once more
            systems = [system for other, system in self._systems.items() if other.place == place]
            which = f" of {len(self._tables) + 1} of {self._variants} variants" if self._variants > 1 else ""
            self._tables[place] = self._computed(systems, limits, which)
            self._waiting.remove(place)
            del self._missed[place]
        return self._tables[place]

    def _computed(self, systems: Sequence[System], limits: Limits, which: str) -> CostTable:
        """Costs on some systems; raises ``LimitReachedError``."""
        table = cost_table(
            self._operators,
            systems,
            limits,
            self._folder,
            self._reported,
            chosen=(self._metric,),
            note=self._note,
        )
        self._note(f"costs{which} known after {self._limits.elapsed:.1f} s")
        return table
