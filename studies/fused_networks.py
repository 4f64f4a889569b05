"""Networks fused and unfused on the machines of the manual's table, a row each.

    python -m studies.fused_networks                                   all networks on all machines
    python -m studies.fused_networks --networks resnet50 --machines tpu-edge --seconds 120

Perfect factors and even storage; machines of other cost models are counted by ``hierarchy``.  Seconds are
those of the processor, of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import tilewright as tw
from studies.fused_rows import print_rows
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
HEADS = ("network", "machine", "unfused", "fused", "bound", "saved", "groups", "CPU s")


def searched(network: str, machine: str, seconds: float) -> FusionAnswer:
    """The best cover of a network by groups, in so many seconds of the processor."""
    question = tw.network(network).on(machine, fuse=True, factors="perfect", cost_model="hierarchy")
    limits = Limits(seconds, threads=1, clock=time.process_time, started=time.process_time())
    return search_network_fusion(question.problem, limits)


def row(network: str, machine: str, seconds: float) -> list[str]:
    """The cells of one network on one machine, energies in whole uJ."""
    begun = time.process_time()
    answer = searched(network, machine, seconds)
    taken = time.process_time() - begun
    unfused = answer.alone[0]
    if answer.value is None or unfused is None:
        return [network, machine, "–", "–", "–", "–", "–", f"{taken:.0f}"]
    bound = "proven" if answer.value == answer.bound else f"{float(answer.bound) / 1e6:,.0f}"
    return [
        network,
        machine,
        f"{float(unfused) / 1e6:,.0f}",
        f"{float(answer.value) / 1e6:,.0f}",
        bound,
        f"{100 * (1 - float(answer.value / unfused)):.1f} %",
        str(sum(group.is_fused for group in answer.groups)),
        f"{taken:.0f}",
    ]


def main(given: Sequence[str] | None = None) -> None:
    """Print the rows as they are found."""
    print_rows("studies.fused_networks", HEADS, (NETWORKS, MACHINES), row, given)


if __name__ == "__main__":
    main()
