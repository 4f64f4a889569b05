"""Inverted residuals of MobileNetV2 as fused groups, a row for each block and machine.

    python -m studies.fused_blocks                                  the rows of the manual
    python -m studies.fused_blocks --blocks 56x56-24-144-24 --machines tpu-edge --seconds 30

A block is a 1x1 convolution, a depthwise 3x3 one and a 1x1 one, without the addition, written as pixels and
channels.  Perfect factors and even storage; machines of other cost models are counted by ``hierarchy``.
Seconds are those of the processor, of one thread.  Rows that the store has are not measured again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from studies.fused_rows import RowAsked, RowFilled, print_rows
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.fused.group_search import search_fused
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d

BLOCKS = ("14x14-64-384-64", "56x56-24-144-24")
MACHINES = ("tpu-edge", "eyeriss-168", "dmazerunner-256")
HEADS = ("block", "machine", "fused µJ", "bound µJ", "turns solved", "CPU s")


def inverted_residual(block: str) -> FusedGroup:
    """The three convolutions of a block."""
    pixels, before, inside, after = block.split("-")
    p, q = (int(size) for size in pixels.split("x"))
    layers = (
        ("expand", conv2d(k=int(inside), c=int(before), p=p, q=q, r=1, s=1)),
        ("depthwise", depthwise_conv2d(c=int(inside), p=p, q=q, r=3, s=3, pad=1)),
        ("project", conv2d(k=int(after), c=int(inside), p=p, q=q, r=1, s=1)),
    )
    readings = (
        Reading("depthwise", "I", "expand", (0, 1, 2, 3), (0, 0, 1, 1)),
        Reading("project", "I", "depthwise", (0, 1, 2, 3), (0, 0, 0, 0)),
    )
    return FusedGroup(layers, readings, frozenset({"project"}))


def filled(row: RowAsked) -> RowFilled:
    """The row of one block on one machine."""
    begun = time.process_time()
    limits = Limits(row.seconds, threads=1, clock=time.process_time, started=begun)
    group, engine = inverted_residual(row.subject), load_engine(row.machine)
    answer = search_fused(group, engine, cost_model("hierarchy"), limits)
    taken = time.process_time() - begun
    value = "–" if answer.value is None else f"{float(answer.value) / 1e6:.2f}"
    bound = "–" if answer.bound is None else f"{float(answer.bound) / 1e6:.2f}"
    proven = answer.complete and answer.value is not None
    cells = [value, "proven" if proven else bound, str(answer.solves), f"{taken:.0f}"]
    return RowFilled("optimal" if proven else "feasible", cells)


def main(given: Sequence[str] | None = None) -> int:
    """Measure the rows that the store lacks, and print all that are asked for."""
    return print_rows("studies.fused_blocks", HEADS, (BLOCKS, MACHINES), filled, given)


if __name__ == "__main__":
    raise SystemExit(main())
