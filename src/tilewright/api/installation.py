"""Whether what is installed works: solvers that load, machine code, and the smallest of schedules."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from tilewright.api.catalog import mapping_solvers


def solvers() -> tuple[list[str], list[str]]:
    """The exact solvers for layers, and those that cannot be loaded with the reason."""
    lines = [*mapping_solvers()]
    missing = [f"{line.name} ({line.about.partition(': ')[2]})" for line in lines if line.exact is None]
    return [line.name for line in lines], missing


def release_fault() -> str:
    """What is wrong with the installed release of CP-SAT; empty where nothing is."""
    from tilewright.solvers.cpsat_run import release_fault as fault

    return fault()


def compile_kernels() -> tuple[int, int]:
    """Compile the machine code of all searches that is missing; all kernels, and those that were missing."""
    from tilewright.solvers.compiling import compiled_in_turn
    from tilewright.solvers.mapping.compiled.program import BOUNDS
    from tilewright.solvers.scheduling.herald.schedule_kernels import SCHEDULES
    from tilewright.solvers.scheduling.tiled.plan_kernels import ATOMS, PLANS
    from tilewright.solvers.scheduling.tiled.tree_kernels import TREES

    every = (TREES, ATOMS, PLANS, SCHEDULES, BOUNDS)
    missing = sum(len(kernels.entries) for kernels in every if not kernels.are_compiled)
    for _ in compiled_in_turn(every, lambda: False):
        pass
    return sum(len(kernels.entries) for kernels in every), missing


def kernel_module() -> Path:
    """A module whose machine code is kept."""
    from tilewright.solvers.mapping.compiled import bound_program_kernel

    return Path(bound_program_kernel.__file__)


def kernel_folder() -> Path | None:
    """Where its machine code is kept; ``None`` for nowhere."""
    from tilewright.solvers.mapping.compiled.program import BOUNDS

    return BOUNDS.entries[0].folder


def annealed_cycles(seconds: float) -> Fraction | None:
    """Cycles of two tasks on two engines as annealing schedules them; 3 are the least."""
    from tilewright.formulation.limits import Limits
    from tilewright.formulation.scheduling.herald.problem import (
        Option,
        ScheduleObjective,
        SchedulingProblem,
        Task,
        feasible_options,
    )
    from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
    from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing

    options = (Option(0, 2, Fraction(2)), Option(1, 3, Fraction(1)))
    tasks = tuple(Task("net", "net", name, options) for name in ("first", "second"))
    problem = SchedulingProblem("doctor", ("a", "b"), tasks, ())
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.MAKESPAN), Limits(seconds=seconds))
    ScheduleAnnealing(problem, feasible_options(problem), seed=0).run(search, rounds=1)
    return search.key
