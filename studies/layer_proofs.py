"""How many layers of whole networks are mapped and proven on many machines, and what is left where not.

    python -m studies.layer_proofs --store proofs.jsonl --cpu 10 --cells 240
    python -m studies.layer_proofs --store both.jsonl --models resnet50 --arch nvdla-256 --storage even,uneven

Every cell is one distinct layer on one machine for one objective, solved in a process of its own by one
thread for so many CPU seconds at most, so figures do not depend on what else the computer does.  Cells come
in an order without meaning, so that the first ones are a sample of all; a run adds to its store, and ends
with a table of those that it has.  Of layers with both kinds of storage it tells how much less uneven storage
takes.
"""

from __future__ import annotations

import hashlib
import json
import math
import resource
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from studies.zoo_maps import distinct_operators
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.problem import IMPERFECT, PERFECT, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.foundation.pool import Call, WorkerDiedError, computed
from tilewright.hardware.mapping.load import list_presets, load_engine
from tilewright.solvers.mapping.compiled.program import await_compiled
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator

MODELS = ("resnet50", "vgg19", "mobilenet-v2", "onnx:densenet121", "bert-base", "gpt2-small", "llama-7b")
#: a block of 2048 tokens, 32 heads
LLAMA = {
    "projection": "gemm:M=2048,N=4096,K=4096",
    "scores": "gemm:M=2048,N=2048,K=128",
    "values": "gemm:M=2048,N=128,K=2048",
    "up": "gemm:M=2048,N=11008,K=4096",
    "down": "gemm:M=2048,N=4096,K=11008",
}
#: a block of 2048 tokens, 96 heads
GPT3 = {
    "projections": "gemm:M=2048,N=36864,K=12288",
    "scores": "gemm:M=2048,N=2048,K=128",
    "values": "gemm:M=2048,N=128,K=2048",
    "output": "gemm:M=2048,N=12288,K=12288",
    "up": "gemm:M=2048,N=49152,K=12288",
    "down": "gemm:M=2048,N=12288,K=49152",
}
BLOCKS = {"llama-7b": LLAMA, "gpt-3": GPT3}
FREE = ("free-3-levels", "free-3-levels-bypass", "free-4-levels", "free-4-levels-bypass")
SOON = 2.0  # CPU seconds after which a mapping should be there


@dataclass(frozen=True, slots=True)
class Cell:
    """One layer on one machine for one objective.

    Parameters
    ----------
    cost_model : by default the machine's
    """

    machine: str
    model: str
    layer: str
    objective: str
    storage: str
    factors: str = IMPERFECT
    cost_model: str = ""

    @property
    def name(self) -> str:
        parts = [self.machine, self.model, self.layer, self.objective, self.storage]
        more = [self.factors] * (self.factors != IMPERFECT) + [self.cost_model] * bool(self.cost_model)
        return "/".join(parts + more)

    @property
    def place(self) -> str:
        """Where the cell stands in an order without meaning."""
        return hashlib.sha256(self.name.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a cell.

    Parameters
    ----------
    cpu : seconds of computing, tables included
    first : of them, those before the first mapping; ``None`` without one
    gap : left at the end; ``None`` without a mapping or a bound
    memory : most that the process held, MB
    nodes : bounded; ``None`` in stores of earlier versions
    busy : seconds in which they were bounded
    tables : MB that bounds were read from
    value : of the objective's key; ``None`` without a mapping
    """

    status: str
    cpu: float
    first: float | None
    gap: float | None
    memory: float
    value: float | None = None
    nodes: int | None = None
    busy: float | None = None
    tables: float | None = None

    @property
    def proven(self) -> bool:
        return self.status in (str(Status.OPTIMAL), str(Status.INFEASIBLE))


def machine_file(name: str) -> str:
    """A preset's name, or the file of a machine that comes with the studies."""
    own = Path(__file__).parent / "machines" / f"{name}.yaml"
    return str(own) if own.exists() else name


@cache
def default_factors(machine: str) -> str:
    """The defaults of ``map`` on a machine."""
    return PERFECT if cost_model(load_engine(machine_file(machine)).cost_model).perfect_only else IMPERFECT


def operators(models: list[str]) -> dict[tuple[str, str], Operator]:
    """The distinct layers of the models, by model and layer."""
    operators_by_layer = {
        (label.split(" ")[0], label.split(" ")[1]): operator
        for operator, label in distinct_operators([name for name in models if name not in BLOCKS]).items()
    }
    for name in BLOCKS.keys() & set(models):
        operators_by_layer |= {(name, layer): parse_layer(text)[1] for layer, text in BLOCKS[name].items()}
    return operators_by_layer


def solved(cell: Cell, operator: Operator, cpu: float) -> Outcome:
    """The cell's outcome, in this process."""
    begun = time.process_time()
    limits = Limits(cpu, threads=1, started=begun, clock=time.process_time)
    first: list[float] = []

    def heard(point: TracePoint) -> None:
        if point.key is not None and not first:
            first.append(time.process_time() - begun)

    engine = load_engine(machine_file(cell.machine))
    problem = layer_problem(
        operator,
        engine,
        parse_objective(cell.objective),
        cell.cost_model or None,
        factors=cell.factors,
        storage=cell.storage,
    )
    result = solve(problem, "auto", limits, heard)
    worked = time.process_time() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gap = None if result.gap is None else float(result.gap)
    value = None if result.key is None else float(result.key)
    effort = result.effort
    return Outcome(
        str(result.status),
        worked,
        first[0] if first else None,
        gap,
        memory,
        value,
        nodes=effort.nodes,
        busy=sum(method.seconds for method in effort.methods if method.nodes),
        tables=effort.table_bytes / 2**20,
    )


def solved_apart(cell: Cell, operator: Operator, cpu: float) -> Outcome:
    """The cell's outcome, from a process of its own."""
    calls = iter([Call(cell, (cell, operator, cpu))])
    ((_, future),) = computed(solved, lambda: next(calls, None), 1, lambda: False)
    try:
        return future.result()
    except WorkerDiedError:
        return Outcome(str(Status.ERROR), cpu, None, None, 0.0)


def stored(store: Path) -> dict[Cell, Outcome]:
    """What earlier runs left."""
    lines = store.read_text().splitlines() if store.exists() else []
    rows = [json.loads(line) for line in lines]
    return {Cell(**row["cell"]): Outcome(**row["outcome"]) for row in rows}


def table(outcomes: dict[Cell, Outcome]) -> Iterator[str]:
    """A Markdown table: a line per machine and objective, and one of all."""
    both = len({cell.storage for cell in outcomes}) > 1
    more = " less than even: median | most |" if both else ""
    yield (
        "| machine | objective | storage, factors | layers | proven | CPU s: median | worst proven | sum | "
        f"worst gap | no mapping after {SOON:g} s | memory, MB | tables, MB | M nodes: sum | a second |{more}"
    )
    yield "|---|---|---|" + "---:|" * (13 if both else 11)
    rows: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in sorted(outcomes, key=lambda cell: (cell.machine, cell.objective, cell.storage, cell.factors)):
        names = (f"`{cell.machine}`", cell.objective, f"{cell.storage}, {cell.factors}")
        rows.setdefault(names, []).append(cell)
    if len(rows) > 2:
        rows["all", "", ""] = list(outcomes)
    for names, cells in rows.items():
        gains = f" {_gains(outcomes, cells)} |" if both else ""
        yield f"| {' | '.join(names)} | {_figures([outcomes[cell] for cell in cells])} |{gains}"


def _figures(mine: list[Outcome]) -> str:
    proven = [outcome for outcome in mine if outcome.proven]
    gaps = [0.0 if outcome.proven else 1.0 if outcome.gap is None else outcome.gap for outcome in mine]
    late = sum(
        outcome.status != Status.INFEASIBLE and (outcome.first is None or outcome.first > SOON)
        for outcome in mine
    )
    times = [outcome.cpu for outcome in mine]
    return (
        f"{len(mine)} | {len(proven)} | {statistics.median(times):.2f} "
        f"| {max((outcome.cpu for outcome in proven), default=0):.1f} | {sum(times):.0f} "
        f"| {100 * max(gaps):.1f} % | {late} | {max(outcome.memory for outcome in mine):.0f} "
        f"| {_nodes(mine)}"
    )


def _nodes(mine: list[Outcome]) -> str:
    """Most tables of a cell, nodes of all, and how many were bounded a second; ``-`` where none counted."""
    counted = [outcome for outcome in mine if outcome.nodes is not None]
    nodes = sum(outcome.nodes or 0 for outcome in counted)
    seconds = sum(outcome.busy or 0.0 for outcome in counted)
    if not counted or not seconds:
        return "- | - | -"
    most = max(outcome.tables or 0.0 for outcome in counted)
    return f"{most:.0f} | {nodes / 1e6:.1f} | {nodes / 1e6 / seconds:.1f}"


def _gains(outcomes: dict[Cell, Outcome], cells: list[Cell]) -> str:
    """How much less uneven cells take than the even ones of the same layers: median and most."""
    gains = []
    for cell in cells:
        even = outcomes.get(replace(cell, storage="even"))
        value = outcomes[cell].value
        if cell.storage != "even" and even is not None and even.value is not None and value is not None:
            gains.append(1 - value / even.value)
    return f"{100 * statistics.median(gains):.2f} % | {100 * max(gains):.2f} %" if gains else "| "


def run(
    store: Annotated[Path, typer.Option(help="file of outcomes, one a line; read and added to")],
    models: Annotated[str, typer.Option(help="comma-separated models")] = ",".join(MODELS),
    arch: Annotated[str, typer.Option(help="comma-separated machines, presets, or free")] = "presets",
    objective: Annotated[str, typer.Option(help="comma-separated objectives")] = "edp,energy",
    storage: Annotated[str, typer.Option(help="even, uneven or both with a comma")] = "even",
    factors: Annotated[
        str, typer.Option(help="perfect or imperfect; by default imperfect where the cost model counts them")
    ] = "",
    cpu: Annotated[float, typer.Option(help="CPU seconds per cell")] = 10.0,
    cells: Annotated[int, typer.Option(help="so many of them; 0 for all")] = 0,
    minutes: Annotated[
        float, typer.Option(help="begin no cell after that; 0 prints the table alone")
    ] = math.inf,
) -> None:
    """Solve what is not in the store yet, and print the table of all that is."""
    begun = time.monotonic()
    machines = [
        machine
        for name in arch.split(",")
        for machine in ({"presets": list_presets(), "free": list(FREE)}.get(name) or [name])
    ]
    operators_by_layer = operators(models.split(","))
    drawn = sorted(
        (
            Cell(machine, *label, goal, kind, factors or default_factors(machine))
            for machine in machines
            for label in operators_by_layer
            for goal in objective.split(",")
            for kind in storage.split(",")
        ),
        key=lambda cell: cell.place,
    )
    sample = drawn[: cells or None]
    done = stored(store)
    await_compiled(lambda: False)
    for cell in sample:
        if time.monotonic() - begun >= 60 * minutes:
            break
        if cell in done:
            continue
        outcome = done[cell] = solved_apart(cell, operators_by_layer[cell.model, cell.layer], cpu)
        with store.open("a") as file:
            file.write(json.dumps({"cell": asdict(cell), "outcome": asdict(outcome)}) + "\n")
    ended = {cell: done[cell] for cell in sample if cell in done}
    print(f"{len(ended)} of {len(drawn)} cells\n")
    print("\n".join(table(ended)))


if __name__ == "__main__":
    typer.run(run)
