"""What ten seconds of one processor prove: layers of every kind on presets and free machines.

    python -m studies.ordinary_machines --store ordinary.jsonl --cells 40
    python -m studies.ordinary_machines --store ordinary.jsonl --cells 0 --minutes 30
    python -m studies.ordinary_machines --store free.jsonl --cells 0 --arch levels --layer product \\
        --layer "3x3 256, 14x14" --objective edp,energy --cpu 30

A cell is one layer on one machine for one objective, even storage, default factors, solved in a process of
its own by one thread.  Cells come in an order without meaning in which every layer has its turn before
another one has its second; a run adds to its store and prints those that it has, the worst ones first.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from studies.layer_proofs import SOON, Cell, Outcome, default_factors, solved_apart, stored
from tilewright.hardware.mapping.load import list_presets
from tilewright.solvers.mapping.compiled.program import await_compiled
from tilewright.workloads.mapping.layer_text import parse_layer

#: of every kind that networks have, and some that no tile divides
LAYERS = {
    "product": "gemm:M=512,N=768,K=768",
    "product of primes": "gemm:M=509,N=769,K=773",
    "product, 128,256 outputs": "gemm:M=64,N=128256,K=4096",
    "matrix times vector": "gemm:M=1,N=4096,K=11008",
    "3x3 256, 14x14": "conv:K=256,C=256,P=14,Q=14,R=3,S=3,pad=1",
    "3x3 64, 14x14, stride 2": "conv:K=64,C=64,H=14,W=14,R=3,S=3,stride=2,pad=1",
    "1x1 512 to 2048, 7x7": "conv:K=2048,C=512,P=7,Q=7,R=1,S=1",
    "7x7, 224x224, stride 2, batch 8": "conv:N=8,K=64,C=3,H=224,W=224,R=7,S=7,stride=2,pad=3",
    "depthwise 3x3, stride 2": "depthwise:C=144,H=56,W=56,R=3,S=3,stride=2,pad=1",
    "grouped 3x3": "conv:K=128,C=128,P=28,Q=28,R=3,S=3,pad=1,groups=32",
    "dilated 3x3": "conv:K=256,C=256,P=33,Q=33,R=3,S=3,pad=2,dilation=2",
    "transposed 4x4": "tconv:K=64,C=128,P=16,Q=16,R=4,S=4,stride=2,pad=1",
    "convolution of primes": "conv:K=97,C=53,P=29,Q=31,R=3,S=5,pad=1x2",
    "scores of attention": "matmul:B=96,M=512,N=512,K=64",
    "values of attention": "matmul:B=96,M=512,N=64,K=512",
    "one dimension": "nest:O[n,k,p] += I[n,c,2*p+r] * W[k,c,r] : n=1,k=128,c=80,p=1500,r=3",
    "three dimensions": "nest:O[k,d,p,q] += I[c,d+t,p+r,q+s] * W[k,c,t,r,s] : "
    "k=64,c=64,d=8,p=28,q=28,t=3,r=3,s=3",
}
#: machines of three to six levels, in all of which every tensor is stored, or which it may bypass
LEVELS = (
    *("free-3-levels", "free-4-levels", "free-5-levels", "free-6-levels"),
    *("free-3-levels-bypass", "free-4-levels-bypass", "free-5-levels-bypass", "free-6-levels-bypass"),
)
MACHINES = (*LEVELS, "free-64x64", "peer-nvdla", "peer-simple", "peer-toy", "peer-eyeriss", "peer-tpu")
OBJECTIVES = ("edp", "energy", "cycles")


def drawn(machines: Sequence[str], layers: Sequence[str], objectives: Sequence[str]) -> list[Cell]:
    """All cells, in their order."""
    cells = [
        Cell(machine, "ordinary", layer, objective, "even", default_factors(machine))
        for layer in layers
        for machine in machines
        for objective in objectives
    ]
    turns: Counter[str] = Counter()
    places: dict[Cell, tuple[int, str]] = {}
    for cell in sorted(cells, key=lambda cell: cell.place):
        places[cell] = (turns[cell.layer], cell.place)
        turns[cell.layer] += 1
    return sorted(cells, key=places.__getitem__)


def table(outcomes: dict[Cell, Outcome]) -> Iterator[str]:
    """A Markdown table: the sum of all cells, and each of them, the largest gap and most seconds first."""
    gaps = {cell: _gap(outcome) for cell, outcome in outcomes.items()}
    proven = sum(outcome.proven for outcome in outcomes.values())
    late = sum(
        outcome.value is not None and (outcome.first is None or outcome.first > SOON)
        for outcome in outcomes.values()
    )
    yield "| cells | proven | gap above 10 % | worst gap | CPU s | first mapping after 2 s | memory, MB |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    yield (
        f"| {len(outcomes)} | {proven} | {sum(gap > 0.1 for gap in gaps.values())} "
        f"| {100 * max(gaps.values(), default=0):.1f} % "
        f"| {sum(outcome.cpu for outcome in outcomes.values()):.0f} | {late} "
        f"| {max((outcome.memory for outcome in outcomes.values()), default=0):.0f} |"
    )
    yield ""
    yield "| machine | layer | objective | status | CPU s | first mapping, s | gap | memory, MB |"
    yield "|---|---|---|---|---:|---:|---:|---:|"
    for cell in sorted(outcomes, key=lambda cell: (-gaps[cell], -outcomes[cell].cpu)):
        outcome = outcomes[cell]
        first = "–" if outcome.first is None else f"{outcome.first:.1f}"
        machine = ", ".join([f"`{cell.machine}`", *filter(None, [cell.cost_model])])
        objective = cell.objective if cell.storage == "even" else f"{cell.objective}, {cell.storage}"
        yield (
            f"| {machine} | {cell.layer} | {objective} | {outcome.status} | {outcome.cpu:.1f} "
            f"| {first} | {100 * gaps[cell]:.1f} % | {outcome.memory:.0f} |"
        )


def _gap(outcome: Outcome) -> float:
    """What is left of the gap; all of it without a mapping or a bound."""
    return 0.0 if outcome.proven else 1.0 if outcome.gap is None else outcome.gap


def run(
    store: Annotated[Path, typer.Option(help="file of outcomes, one a line; read and added to")],
    arch: Annotated[
        str, typer.Option(help="comma-separated, or levels; by default presets and free machines")
    ] = "",
    layer: Annotated[list[str] | None, typer.Option(help="its name; by default all layers")] = None,
    objective: Annotated[str, typer.Option(help="comma-separated objectives")] = ",".join(OBJECTIVES),
    cpu: Annotated[float, typer.Option(help="CPU seconds per cell")] = 10.0,
    cells: Annotated[int, typer.Option(help="so many of them; 0 for all")] = 40,
    minutes: Annotated[
        float, typer.Option(help="begin no cell after that; 0 prints the tables alone")
    ] = math.inf,
) -> None:
    """Solve what is not in the store yet, and print the tables of all that is."""
    machines = {"": (*list_presets(), *MACHINES), "levels": LEVELS}.get(arch) or arch.split(",")
    sample = drawn(machines, layer or [*LAYERS], objective.split(","))[: cells or None]
    print("\n".join(table(measured(sample, store, cpu, minutes))))


def measured(sample: Sequence[Cell], store: Path, cpu: float, minutes: float) -> dict[Cell, Outcome]:
    """What a store has of some cells, after those were solved that it had not.

    Parameters
    ----------
    cpu : seconds for each of them
    minutes : after which no cell is begun
    """
    begun = time.monotonic()
    done = stored(store)
    await_compiled(lambda: False)
    for cell in sample:
        if time.monotonic() - begun >= 60 * minutes:
            break
        if cell not in done:
            _, operator = parse_layer(LAYERS[cell.layer])
            done[cell] = solved_apart(cell, operator, cpu)
            with store.open("a") as file:
                file.write(json.dumps({"cell": asdict(cell), "outcome": asdict(done[cell])}) + "\n")
    return {cell: done[cell] for cell in sample if cell in done}


if __name__ == "__main__":
    typer.run(run)
