"""The machine code of schedules on sub-accelerators."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    Task,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.solvers.compiling import Kernels
from tilewright.solvers.scheduling.herald.beams import beam_kernel, beam_pool_kernel
from tilewright.solvers.scheduling.herald.beams.beam_chains import ALL
from tilewright.solvers.scheduling.herald.beams.beam_search import BeamSearch, Part, Shape
from tilewright.solvers.scheduling.herald.lower_bounds import chain_label_kernel
from tilewright.solvers.scheduling.herald.lower_bounds.chain_labels import ChainRelaxation
from tilewright.solvers.scheduling.herald.walks import (
    dispatch_kernel,
    list_kernel,
    sequence_kernel,
    sequence_times_kernel,
)
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.dispatching import Dispatching
from tilewright.solvers.scheduling.herald.walks.prices import even_prices


def _anneal() -> None:
    options = (Option(0, 2, Fraction(2)), Option(1, 3, Fraction(1)))
    tasks = tuple(Task("net", "net", name, options) for name in ("first", "second"))
    problem = SchedulingProblem("compiling", ("a", "b"), tasks, ())
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.MAKESPAN), Limits())
    feasible = feasible_options(problem)
    prices = (even_prices(problem),)
    annealing = ScheduleAnnealing(problem, feasible, seed=0)
    annealing.run(search, rounds=1)
    assert search.answer is not None
    beams = BeamSearch(problem, feasible, 0, prices, annealing)
    beams.find(search, prices[0], (), Shape(1, 1, 0.0, 9.0, ALL), Part(search.answer))
    Dispatching(problem, feasible, 0, prices[0]).start(search)
    ChainRelaxation(feasible, prices[0], [(0,), (1,)]).bound(9.0, lambda: False)


SCHEDULES: Final = Kernels(
    (__name__, "SCHEDULES"),
    (
        beam_kernel.advance,
        beam_kernel.begin,
        beam_pool_kernel.room,
        beam_kernel.taken,
        chain_label_kernel.all_within,
        chain_label_kernel.keep_undominated,
        chain_label_kernel.moved,
        dispatch_kernel.anneal_rule,
        dispatch_kernel.dispatch,
        dispatch_kernel.room,
        list_kernel.list_schedule,
        sequence_kernel.anneal_sequences,
        sequence_times_kernel.times_of,
    ),
    _anneal,
)
"""What annealing needs."""
