"""Results that stay in the shared memory, as part of the CP-SAT model of a schedule."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem

Kept = MappingABC[tuple[int, int], cp_model.IntVar]


@dataclass(frozen=True)
class ResidencyTerms:
    """The rules of `tilewright.formulation.scheduling.herald.evaluator` for results that stay.

    Parameters
    ----------
    options, choices : per task, its options and one literal for each
    """

    model: cp_model.CpModel
    problem: SchedulingProblem
    options: Sequence[tuple[Option, ...]]
    choices: Sequence[Sequence[cp_model.IntVar]]

    def decide(
        self, starts: Sequence[cp_model.IntVar], durations: Sequence[cp_model.LinearExpr | int], horizon: int
    ) -> tuple[dict[tuple[int, int], cp_model.IntVar], list[tuple[cp_model.IntervalVar, int]]]:
        """One literal per edge, and the intervals in which results take their bytes."""
        model = self.model
        kept: dict[tuple[int, int], cp_model.IntVar] = {}
        held: list[tuple[cp_model.IntervalVar, int]] = []
        for task, readers in enumerate(self.problem.after):
            size = self.problem.tasks[task].result_bytes
            if not size or not readers:
                continue
            stays = model.new_bool_var("")
            until, length = model.new_int_var(0, horizon, ""), model.new_int_var(0, horizon, "")
            held.append((model.new_optional_interval_var(starts[task], length, until, stays, ""), size))
            for other in {*readers}:
                literal = kept[task, other] = model.new_bool_var("")
                model.add_implication(literal, stays)
                model.add(until >= starts[other] + durations[other]).only_enforce_if(literal)
        return kept, held

    def spills(self, kept: Kept) -> list[cp_model.LinearExpr]:
        """Energy at DRAM of what did not stay, in units of ``1 / energy_scale`` pJ."""
        problem = self.problem
        terms: list[cp_model.LinearExpr] = []
        for task, own in enumerate(self.options):
            reads = [(first, task) for first in {*problem.before[task]}]
            written = [(task, other) for other in {*problem.after[task]}]
            for literal, option in zip(self.choices[task], own, strict=True):
                for energy, edges in ((option.input_spill, reads), (option.output_spill, written)):
                    if energy:
                        scaled = int(energy * problem.energy_scale)
                        terms.append(scaled * self._spilled(literal, edges, kept))
        return terms

    def _spilled(
        self, chosen: cp_model.IntVar, edges: Sequence[tuple[int, int]], kept: Kept
    ) -> cp_model.IntVar:
        """True where the option is chosen and not all of the edges are kept, or there is none."""
        if not edges or any(edge not in kept for edge in edges):
            return chosen
        spilled = self.model.new_bool_var("")
        for edge in edges:
            self.model.add_bool_or(~chosen, kept[edge], spilled)
        return spilled
