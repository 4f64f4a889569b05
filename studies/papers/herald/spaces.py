"""Schedules of Herald's workloads on any of its machines, each with a bound; whole design spaces at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from studies.papers.figure import Row
from studies.papers.study import Study
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.hardware.scheduling.herald.classes import (
    AcceleratorClass,
    accelerator_class,
    list_system_presets,
    make_system,
    system_preset,
    with_steps,
)
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.cost_tables.build import (
    METRIC_OF,
    problem_from_table,
    workload_operators,
)
from tilewright.solvers.scheduling.herald.cost_tables.costs import cost_table
from tilewright.solvers.scheduling.herald.partitions.partition import partitions_of
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.scheduling.workload import Part, Workload
from tilewright.workloads.scheduling.workload_file import load_workload

QUICK: Final = "herald[feedback=loads]"
"""Herald's scheduler, balancing by loads: some tenths of a second for hundreds of layers."""
MAELSTROM: Final = ("nvdla", "shidiannao")
STEPS: Final = {"edge": (64, 4), "mobile": (512, 16), "cloud": (1024, 64)}
"""PEs and GB/s of a grid's steps in short runs; the mobile and cloud classes have finer ones."""
CLASSES: Final = ("edge", "mobile", "cloud")
WORKLOADS: Final = ("ar-vr-a", "ar-vr-b", "mlperf-1")
ALL: Final = ("fda", "smfda", "rda")
FEW: Final = ("fda", "rda")
"""Styles of monoliths in short runs."""
UNITS: Final = {"cycles": 1e6, "energy": 1e9, "edp": 1e21}
"""Of Mcycles, mJ and GJ cycle."""


def workload(text: str) -> Workload:
    """A workload by name, or ``NETWORKxRUNS``."""
    name, _, runs = text.rpartition("x")
    if name and runs.isdecimal():
        return Workload(text, (Part(name, resolve_model(name, 1), int(runs)),))
    return load_workload(text)


def resources(size: str, pe_step: int, bandwidth_step: int) -> AcceleratorClass:
    """A class with its grid's steps."""
    return with_steps(accelerator_class(size), pe_step, bandwidth_step)


def scheduled(problem: SchedulingProblem, method: str, seconds: float | None = None) -> dict[str, float]:
    """A method's schedule of least EDP: cycles, energy, EDP, and the bound of its search."""
    scheduler = METHODS.make(method)
    goal = ScheduleGoal(problem, ScheduleObjective.EDP)
    result = run_method(
        ScheduleSearch(
            goal, Limits(seconds=seconds, threads=1, clock=time.process_time), exact=scheduler.exact
        ),
        scheduler,
        method,
    )
    assert result.evaluation is not None
    assert result.key is not None
    assert result.bound is not None
    cycles, energy = result.evaluation.makespan, float(result.evaluation.energy)
    seconds_used = next(point.seconds for point in reversed(result.trace) if point.improved)
    return {
        "cycles": cycles,
        "energy": energy,
        "edp": cycles * energy,
        "bound": float(result.bound),
        "seconds": seconds_used,
        "layers": len(problem.tasks),
    }


def design_space(
    name: str, size: str, flows: Sequence[str], steps: Sequence[int], method: str
) -> list[dict[str, Any]]:
    """Every partition of a class, scheduled.

    Parameters
    ----------
    name : of the workload
    size : the class
    flows : the dataflow of each sub-accelerator
    steps : of PEs and of bandwidth
    method : that schedules
    """
    work, own = workload(name), resources(size, steps[0], steps[1])
    systems = {
        parts: make_system("point", own, flows, parts) for parts in partitions_of(own, flows, "exhaustive", 0)
    }
    table = cost_table(workload_operators(work), [*systems.values()], Limits(threads=1))
    metric = METRIC_OF[ScheduleObjective.EDP]
    points = []
    for parts, system in systems.items():
        schedule = scheduled(problem_from_table(work, system, metric, table), method)
        points.append({"parts": [[pes, float(rate)] for pes, rate in parts], **schedule})
    return points


def on_parts(
    name: str,
    size: str,
    flows: Sequence[str],
    parts: Sequence[Sequence[float]],
    method: str,
    seconds: float | None,
) -> dict[str, float]:
    """A workload on one partition of a class."""
    exact = [(int(pes), int(rate)) for pes, rate in parts]
    return _on(name, make_system("point", accelerator_class(size), flows, exact), method, seconds)


def on_preset(name: str, system: str, method: str, seconds: float | None) -> dict[str, float]:
    """A workload on a preset."""
    return _on(name, system_preset(system), method, seconds)


def _on(name: str, system: Any, method: str, seconds: float | None) -> dict[str, float]:
    work = workload(name)
    table = cost_table(workload_operators(work), [system], Limits(threads=1))
    metric = METRIC_OF[ScheduleObjective.EDP]
    return scheduled(problem_from_table(work, system, metric, table), method, seconds)


def points_of(
    study: Study, work: str, size: str, flows: Sequence[str] = MAELSTROM, steps: Sequence[int] = ()
) -> list[Row]:
    """The cell of a whole design space, by the study's method and its steps of the class.

    Parameters
    ----------
    study : whose cells these are
    work, size : workload and class
    flows : the dataflow of each sub-accelerator
    steps : others than the study's
    """
    points: list[Row] = study.cell(
        "design space",
        design_space,
        name=work,
        size=size,
        flows=list(flows),
        steps=list(steps or study["steps"][size]),
        method=study["method"],
    )
    return points


def best_of(points: Sequence[Row]) -> Row:
    """The point of least EDP."""
    return min(points, key=lambda row: float(row["edp"]))


def part_of(study: Study, work: str, size: str, parts: Sequence[Sequence[float]]) -> Row:
    """The cell of one partition of Maelstrom by the study's method.

    Parameters
    ----------
    study, work, size : as of `points_of`
    parts : PEs and GB/s of each sub-accelerator
    """
    point: Row = study.cell(
        "partition",
        on_parts,
        name=work,
        size=size,
        flows=list(MAELSTROM),
        parts=list(parts),
        method=study["method"],
        seconds=None,
    )
    return point


def preset_of(study: Study, work: str, system: str, method: str = "", seconds: float | None = None) -> Row:
    """The cell of a preset.

    Parameters
    ----------
    study, work : as of `points_of`
    system : name of the preset
    method : another than the study's
    seconds : limit of the search
    """
    values = {"system": system, "method": method or study["method"], "seconds": seconds}
    point: Row = study.cell("preset", on_preset, name=work, **values)
    return point


def singles_of(study: Study, work: str, size: str, styles: Sequence[str] = ()) -> dict[str, Row]:
    """The cells of a class's monoliths by the names that the paper's pictures have.

    Parameters
    ----------
    study, work, size : as of `points_of`
    styles : others than the study's
    """
    named = monoliths(size, styles or study.values.get("monoliths", ALL))
    return {name: preset_of(study, work, system) for name, system in named.items()}


def monoliths(size: str, styles: Sequence[str] = ALL) -> dict[str, str]:
    """FDAs, SM-FDAs and the RDA of a class by the names that the paper's pictures have."""
    names = {}
    for preset in list_system_presets():
        style, own, *flow = preset.split("-")
        if own == size and style in styles:
            names[" ".join([{"smfda": "SM-FDA"}.get(style, style.upper()), *flow])] = preset
    return names


def best_fda(rows: dict[str, dict[str, float]]) -> dict[str, float]:
    """The FDA of least EDP."""
    return min((row for name, row in rows.items() if name.startswith("FDA")), key=lambda row: row["edp"])


def most_gained(percent: float) -> str:
    """What bounds of all partitions prove about the EDP against the best FDA's.

    Parameters
    ----------
    percent : by which the least bound is below it; negative where it is above
    """
    if percent < 0:
        more = f"at least {-percent:.1f} % more EDP than the best FDA"
        return f"every schedule on any partition of these grids has {more}"
    less = f"more than {percent:.1f} % less EDP than the best FDA"
    return f"no schedule on any partition of these grids has {less}"
