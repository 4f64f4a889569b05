"""``tilewright doctor``: whether this installation works, and how fast."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import show, write
from tilewright.foundation.errors import one_line

_PACKAGES = ("numpy", "llvmlite", "onnx", "networkx", "ortools", "pydantic", "pyyaml", "rich", "typer")
_LAYER = "conv:K=64,C=64,P=14,Q=14,R=3,S=3,pad=1"
_ARCH = "eyeriss-256"
_NETWORK, _TILED = "alexnet", "atomic-2x2"
_SLOW = 30.0
_ANY_PLAN = 0.99
"""A gap within which the first plan lies."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    text: str


def doctor_command(
    arch: Annotated[
        str | None,
        typer.Argument(
            metavar="[MACHINE]",
            help="A machine to look at instead: what of it is unusual.",
            autocompletion=completion.machines,
        ),
    ] = None,
    format: options.ShortFormat = "table",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
) -> int:
    """Check Python, libraries, models and machines, and time a small proof; or look at a machine."""
    options.parse_choice(format, "--format", ("table", "json"))
    if arch is not None:
        return _show_unusual(arch, format)
    findings = list(_findings())
    if format == "json":
        rows = [{"name": f.name, "ok": f.ok, "text": f.text} for f in findings]
        write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    else:
        _show(findings)
    return Exit.OK if all(finding.ok for finding in findings) else Exit.ERROR


def _show_unusual(arch: str, form: str) -> int:
    """What of a machine is unusual; that is no error."""
    from rich.text import Text

    from tilewright.hardware.mapping.load import load_engine
    from tilewright.hardware.mapping.unusual import unusual

    sentences = unusual(load_engine(arch))
    if form == "json":
        write(json.dumps({"machine": arch, "unusual": sentences}, indent=2, ensure_ascii=False) + "\n")
    elif sentences:
        show(*(Text(sentence, "yellow") for sentence in sentences))
    else:
        show(Text(f"{arch}: nothing unusual", "green"))
    return Exit.OK


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
    from tilewright.api.installation import release_fault, solvers

    names, missing = solvers()
    fault = release_fault()
    faults = [fault] * bool(fault) + [f"cannot load {', '.join(missing)}"] * bool(missing)
    return not faults, "; ".join(faults) or ", ".join(names)


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
    from tilewright.api.installation import compile_kernels
    from tilewright.report.text.quantities import seconds_text

    begun = time.monotonic()
    every, missing = compile_kernels()
    if not missing:
        return True, f"{every} kernels, compiled before"
    return True, f"compiled {missing} kernels in {seconds_text(time.monotonic() - begun)}"


def _proof() -> tuple[bool, str]:
    from tilewright.api.mapping.layer import layer
    from tilewright.api.solving import solve
    from tilewright.formulation.stopping import seconds
    from tilewright.report.text.quantities import seconds_text

    result = solve(layer(_LAYER).on(_ARCH, "edp"), stop=seconds(_SLOW))
    record = result.record
    took = seconds_text(record.wall_s)
    return record.status == "optimal", f"{_LAYER} on {_ARCH}: {record.status} in {took} ({record.solver})"


def _kept() -> tuple[bool, str]:
    """Where calls keep what later ones use, all of which may be deleted, and why not elsewhere."""
    from tilewright.api.installation import kernel_folder, kernel_module
    from tilewright.foundation import trust
    from tilewright.foundation.caches import cache_folder, code_folders, usual_folder

    folder = kernel_folder()
    code = "nowhere" if folder is None else f"{folder} and its like (*.code)"
    usual = usual_folder()
    places = [*code_folders(kernel_module()), *([] if usual is None else [(usual, None)])]
    doubts = [doubt for place in places if (doubt := trust.doubt(*place)) is not None]
    untrusted = f"; not trusted: {'; '.join(dict.fromkeys(doubts))}" if doubts else ""
    return folder is not None, f"costs of layers in {cache_folder()}; machine code in {code}{untrusted}"


def _schedule() -> tuple[bool, str]:
    """Anneals a schedule of two tasks."""
    from tilewright.api.installation import annealed_cycles
    from tilewright.report.text.quantities import seconds_text

    began = time.monotonic()
    cycles = annealed_cycles(_SLOW)
    took = seconds_text(time.monotonic() - began)
    return cycles == 3, f"annealing two tasks: {cycles} cycles in {took}"


def _plan() -> tuple[bool, str]:
    """Plans a small network on a tiled machine."""
    from tilewright.api.scheduling.tiled_machine import tiled_machine
    from tilewright.api.scheduling.workload import workload
    from tilewright.api.solving import solve
    from tilewright.formulation.stopping import gap, seconds
    from tilewright.report.text.quantities import seconds_text

    stop = seconds(_SLOW) | gap(_ANY_PLAN)
    plan = solve(workload(_NETWORK).on(tiled_machine(_TILED), batch=1), method="set-ls", stop=stop)
    took = seconds_text(plan.record.wall_s)
    method = plan.record.settings.method
    return plan.record.plan is not None, f"{_NETWORK} on {_TILED}: {plan.status} in {took} ({method})"
