"""Attention without its softmax, with whole rows, and with rows in parts: a row for each head and machine.

    python -m studies.fused_softmax                                the rows of the manual
    python -m studies.fused_softmax --heads 4096x64 --machines tpu-edge --seconds 30

A head is written as tokens and features.  Perfect factors and even storage; machines of other cost models are
counted by ``hierarchy``.  Energies are in µJ of one head; seconds are those of the processor, of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction

from studies.fused_rows import RowAsked, RowFilled, print_rows
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.fused.group_search import search_fused
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import gemm

HEADS_OF_BERT = ("512x64", "4096x64")
MACHINES = ("tpu-edge", "eyeriss-168", "dmazerunner-256")
COLUMNS = ("head", "machine", "unfused", "no softmax", "whole rows", "in parts", "CPU s")


def attention(head: str, rows: tuple[int, ...] = (), *, online: bool = False) -> FusedGroup:
    """The two products of one head.

    Parameters
    ----------
    head : tokens and features
    rows : axes of the scores along which a softmax runs
    online : whether it may be taken in parts
    """
    tokens, features = (int(size) for size in head.split("x"))
    layers = (("qk", gemm(m=tokens, n=tokens, k=features)), ("av", gemm(m=tokens, n=features, k=tokens)))
    reading = Reading("av", "A", "qk", (0, 1), (0, 0), rows)
    return FusedGroup(layers, (reading,), frozenset({"av"}), online_softmax=online)


def filled(row: RowAsked) -> RowFilled:
    """The row of one head on one machine."""
    begun = time.process_time()
    head, engine = row.subject, load_engine(row.machine)
    energy = parse_objective("energy")
    groups = (attention(head), attention(head, (1,)), attention(head, (1,), online=True))
    alone = Fraction(0)
    for _, operator in groups[0].layers:
        result = solve(layer_problem(operator, engine, energy, "hierarchy", (), "perfect"))
        assert result.evaluation is not None
        alone += result.evaluation.energy
    cells = [f"{float(alone) / 1e6:.1f}"]
    for group in groups:
        limits = Limits(row.seconds, threads=1, clock=time.process_time, started=time.process_time())
        answer = search_fused(group, engine, cost_model("hierarchy"), limits)
        proven = answer.complete and answer.value is not None
        value = answer.reason if answer.value is None else f"{float(answer.value) / 1e6:.1f}"
        cells.append(value if proven or answer.value is None else f"{value}, not proven")
    return RowFilled("filled", [*cells, f"{time.process_time() - begun:.1f}"])


def main(given: Sequence[str] | None = None) -> int:
    """Measure the rows that the store lacks, and print all that are asked for."""
    return print_rows("studies.fused_softmax", COLUMNS, (HEADS_OF_BERT, MACHINES), filled, given)


if __name__ == "__main__":
    raise SystemExit(main())
