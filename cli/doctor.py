"""``tilewright doctor``: whether this installation works, and how fast."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import options
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import show, write
from tilewright.foundation.errors import one_line

_PACKAGES = ("numpy", "llvmlite", "onnx", "networkx", "ortools", "pydantic", "pyyaml", "rich", "typer")
_LAYER = "conv:K=64,C=64,P=14,Q=14,R=3,S=3,pad=1"
_ARCH = "eyeriss-256"
_NETWORK, _TILED = "alexnet", "atomic-2x2"
_SLOW = 30.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    text: str


def doctor_command(
    format: options.ShortFormat = "table",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
) -> int:
    """Check Python, libraries, shipped models and machines, and time a small proof."""
    options.parse_choice(format, "--format", ("table", "json"))
    findings = list(_findings())
    if format == "json":
        rows = [{"name": f.name, "ok": f.ok, "text": f.text} for f in findings]
        write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    else:
        _show(findings)
    return Exit.OK if all(finding.ok for finding in findings) else Exit.ERROR


def _show(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for finding in findings:
        mark = Text("ok", "green") if finding.ok else Text("no", "bold red")
        table.add_row(mark, finding.name, finding.text)
    bad = sum(not finding.ok for finding in findings)
    end = Text("all is well", "bold green")
    if bad:
        end = Text(f"{bad} {'thing needs' if bad == 1 else 'things need'} attention", "bold red")
    show(table, "", end)


def _findings() -> Iterator[Finding]:
    supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    yield Finding(
        "python", supported, f"{platform.python_version()} ({'' if supported else 'not '}supported)"
    )
    yield Finding("machine", True, _machine())
    for package in ("tilewright", *_PACKAGES):
        try:
            yield Finding(package, True, version(package))
        except PackageNotFoundError:
            yield Finding(package, False, "not installed")
    looks = {
        "solvers": _solvers,
        "machines": _presets,
        "models": _models,
        "machine code": _compiled,
        "proof": _proof,
        "schedule": _schedule,
        "plan": _plan,
        "kept files": _kept,
    }
    for name, look in looks.items():
        yield _looked(name, look)


def _looked(name: str, look: Callable[[], tuple[bool, str]]) -> Finding:
    try:
        return Finding(name, *look())
    except Exception as error:
        return Finding(name, False, f"{type(error).__name__}: {one_line(error)}")


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"{cores} {'core' if cores == 1 else 'cores'}, {platform.system()} {platform.machine()}"
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, OSError, ValueError):
        return text
    return f"{text}, {memory:.1f} GB of memory"


def _solvers() -> tuple[bool, str]:
    from tilewright.solvers.mapping.registry import SOLVERS

    fault = import_module("tilewright.solvers.cpsat_run").release_fault()
    missing = []
    for name in SOLVERS.names():
        try:
            SOLVERS.make(name)
        except (ImportError, AttributeError) as error:
            missing.append(f"{name} ({one_line(error)})")
    faults = [fault] * bool(fault) + [f"cannot load {', '.join(missing)}"] * bool(missing)
    return not faults, "; ".join(faults) or ", ".join(SOLVERS.names())


def _presets() -> tuple[bool, str]:
    from tilewright.hardware.mapping.load import list_presets, load_engine

    engines = [load_engine(name) for name in list_presets()]
    return bool(engines), f"{len(engines)} presets"


def _models() -> tuple[bool, str]:
    from tilewright.workloads.catalog import list_models, resolve_model

    names = [name for name in list_models() if name.startswith("onnx:")]
    if not names:
        return False, "the onnx package has no models; ONNX files of your own still work"
    network = resolve_model(names[0])
    return True, f"{len(names)} in the onnx package; {names[0]} has {len(network)} layers"


def _compiled() -> tuple[bool, str]:
    """Compile what is missing, before anything is timed that needs it."""
    from tilewright.report.text.quantities import seconds_text

    begun = time.monotonic()
    missing, number = compile_kernels()
    if not missing:
        return True, f"{number} kernels, compiled before"
    return True, f"compiled {missing} kernels in {seconds_text(time.monotonic() - begun)}"


def compile_kernels() -> tuple[int, int]:
    """Compile the kernels of every verb; returns how many were missing, and how many there are."""
    from tilewright.solvers.compiling import compiled_in_turn
    from tilewright.solvers.mapping.program import BOUNDS
    from tilewright.solvers.scheduling.herald.schedule_kernels import SCHEDULES
    from tilewright.solvers.scheduling.tiled.plan_kernels import ATOMS, PLANS
    from tilewright.solvers.scheduling.tiled.tree_kernels import TREES

    every = (TREES, ATOMS, PLANS, SCHEDULES, BOUNDS)
    missing = sum(len(kernels.entries) for kernels in every if not kernels.are_compiled)
    for _ in compiled_in_turn(every, lambda: False):
        pass
    return missing, sum(len(kernels.entries) for kernels in every)


def _proof() -> tuple[bool, str]:
    from tilewright.formulation.limits import Limits
    from tilewright.formulation.mapping.problem import layer_problem
    from tilewright.formulation.objective import parse_objective
    from tilewright.hardware.mapping.load import load_engine
    from tilewright.report.text.quantities import seconds_text
    from tilewright.solvers.mapping.solve import solve
    from tilewright.workloads.mapping.layer_text import parse_layer

    operator = parse_layer(_LAYER)[1]
    limits = Limits(seconds=_SLOW)
    result = solve(layer_problem(operator, load_engine(_ARCH), parse_objective("edp")), limits=limits)
    took = seconds_text(limits.elapsed)
    return result.status == "optimal", f"{_LAYER} on {_ARCH}: {result.status} in {took} ({result.method})"


def _kept() -> tuple[bool, str]:
    """Where calls keep what later ones use, all of which may be deleted, and why not elsewhere."""
    from tilewright.foundation import trust
    from tilewright.foundation.caches import cache_folder, code_folders, usual_folder
    from tilewright.solvers.mapping import bound_program_kernel
    from tilewright.solvers.mapping.program import BOUNDS

    folder = BOUNDS.entries[0].folder
    code = "nowhere" if folder is None else f"{folder} and its like (*.code)"
    places = [*code_folders(Path(bound_program_kernel.__file__)), (usual_folder(), None)]
    doubts = [doubt for place in places if (doubt := trust.doubt(*place)) is not None]
    untrusted = f"; not trusted: {'; '.join(dict.fromkeys(doubts))}" if doubts else ""
    return folder is not None, f"costs of layers in {cache_folder()}; machine code in {code}{untrusted}"


def _schedule() -> tuple[bool, str]:
    """Anneals a schedule of two tasks."""
    from tilewright.formulation.limits import Limits
    from tilewright.formulation.scheduling.herald.problem import (
        Option,
        ScheduleObjective,
        SchedulingProblem,
        Task,
        feasible_options,
    )
    from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
    from tilewright.report.text.quantities import seconds_text
    from tilewright.solvers.scheduling.herald.annealing import ScheduleAnnealing

    options = (Option(0, 2, Fraction(2)), Option(1, 3, Fraction(1)))
    tasks = tuple(Task("net", "net", name, options) for name in ("first", "second"))
    problem = SchedulingProblem("doctor", ("a", "b"), tasks, ())
    limits = Limits(seconds=_SLOW)
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.MAKESPAN), limits)
    ScheduleAnnealing(problem, feasible_options(problem), seed=0).run(search, rounds=1)
    return search.key == 3, f"annealing two tasks: {search.key} cycles in {seconds_text(limits.elapsed)}"


def _plan() -> tuple[bool, str]:
    """Plans a small network on a tiled machine."""
    from tilewright.formulation.limits import Limits
    from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
    from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
    from tilewright.report.text.quantities import seconds_text
    from tilewright.solvers.scheduling.tiled.running import plan_run
    from tilewright.workloads.catalog import resolve_model

    machine, objective = load_tiled_machine(_TILED), tiled_objective("makespan")
    problem = TiledProblem(resolve_model(_NETWORK, 1), machine, objective)
    limits = Limits(seconds=_SLOW, gap=1.0)
    result = plan_run(lambda: problem, "set-ls", limits).run()
    took = seconds_text(limits.elapsed)
    text = f"{_NETWORK} on {_TILED}: {result.status} in {took} ({result.method})"
    return result.answer is not None, text
