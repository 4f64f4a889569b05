"""Networks fused and unfused on the machines of the manual's table, a row each.

    python -m studies.fused_networks                                   all networks on all machines
    python -m studies.fused_networks --networks resnet50 --machines tpu-edge --seconds 60
    python -m studies.fused_networks --only-print                      what is known

Perfect factors and even storage; machines of other cost models are counted by ``hierarchy``.  Seconds are
those of the processor, of one thread; every row has a process of its own.  Rows that the store has for as
many seconds are not measured again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import tilewright as tw
from studies.fused_rows import RowAsked, RowFilled, print_rows
from tilewright.formulation.limits import Limits
from tilewright.solvers.mapping.fused.answers import FusionAnswer
from tilewright.solvers.mapping.fused.network import search_network_fusion

NETWORKS = (
    "bert-base",
    "gpt2-small",
    "mobilenet-v2",
    "resnet50",
    "llama3[size=8B,phase=prefill,tokens=512]",
    "llama3[size=8B,phase=decode,cached=8191,batch=32]",
)
MACHINES = ("tpu-edge", "eyeriss-168", "dmazerunner-256", "tpu-v4i", "nvdla-256")
HEADS = ("network", "machine", "unfused", "fused", "bound", "gap", "saved", "groups", "CPU s")


def searched(network: str, machine: str, seconds: float) -> FusionAnswer:
    """The best cover of a network by groups, in so many seconds of the processor."""
    question = tw.network(network).on(machine, fuse=True, factors="perfect", cost_model="hierarchy")
    limits = Limits(seconds, threads=1, clock=time.process_time, started=time.process_time())
    return search_network_fusion(question.problem, limits)


def filled(row: RowAsked) -> RowFilled:
    """The row of one network on one machine, energies in whole uJ."""
    begun = time.process_time()
    answer = searched(row.subject, row.machine, row.seconds)
    taken = f"{time.process_time() - begun:.0f}"
    unfused = answer.alone[0]
    if answer.value is None or unfused is None:
        return RowFilled("unknown", ["–"] * 6 + [taken])
    proven = answer.value == answer.bound
    cells = [
        f"{float(unfused) / 1e6:,.0f}",
        f"{float(answer.value) / 1e6:,.0f}",
        "proven" if proven else f"{float(answer.bound) / 1e6:,.0f}",
        "0" if proven else f"{100 * float(1 - answer.bound / answer.value):.2f} %",
        f"{100 * (1 - float(answer.value / unfused)):.1f} %",
        str(sum(group.is_fused for group in answer.groups)),
        taken,
    ]
    return RowFilled("optimal" if proven else "feasible", cells)


def main(given: Sequence[str] | None = None) -> int:
    """Measure the rows that the store lacks, and print all that are asked for."""
    return print_rows("studies.fused_networks", HEADS, (NETWORKS, MACHINES), filled, given)


if __name__ == "__main__":
    raise SystemExit(main())
