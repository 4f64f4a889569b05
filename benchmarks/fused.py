"""Heuristics for fused mappings beside the proven optimum, network by network.

Runs are few and are not stored.  Seconds are those of the processor, of all threads of this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from tilewright.api.arguments import Budget, SearchRequest
from tilewright.api.catalog import made_method
from tilewright.api.mapping.fusion import Factors, FusedResult, NetworkFused
from tilewright.formulation.method import is_stochastic
from tilewright.formulation.stopping import NEVER
from tilewright.workloads.network import Network

OPTIMUM = "optimum"


@dataclass(frozen=True)
class FusedRequest:
    """What is to be measured.

    Parameters
    ----------
    networks : with their links
    machines, objectives, methods : names
    seeds : runs of a method that draws random numbers
    seconds : time limit of a method's run
    proof : time limit of a proof; ``None`` to prove nothing
    factors : of mappings of turns and of shared loops
    threads : of every search
    """

    networks: tuple[Network, ...]
    machines: tuple[str, ...]
    objectives: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: int = 5
    seconds: float | None = None
    proof: float | None = 60.0
    factors: Factors | None = None
    threads: int = 1


@dataclass(frozen=True)
class FusedRow:
    """One run.

    Parameters
    ----------
    method, seed : ``optimum`` for the search that proves
    value : of the objective, energy in pJ; ``None`` without an answer
    bound : proven for this network on this machine by the search that proves, or else by the run itself
    gap : ``value / bound - 1``, which is that to the optimum where the optimum is proven
    unfused : value of the layers one by one
    groups : of two layers or more in the answer
    seconds : of the processor
    """

    network: str
    machine: str
    objective: str
    method: str
    seed: int
    value: float | None
    bound: float
    gap: float | None
    proven: bool
    unfused: float | None
    groups: int
    seconds: float

    def to_data(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def fused_rows(
    request: FusedRequest, stop: threading.Event, begun: Callable[[str], None] = lambda text: None
) -> Iterator[FusedRow]:
    """Every run, each proof before the heuristics on the same network; ends early where it is stopped.

    Parameters
    ----------
    request : what is measured
    stop : ends the run at hand, which still gives its row, and leaves out all others
    begun : hears of every run that begins
    """
    made = {method: made_method(method, "fused", "--method") for method in request.methods}
    for network, machine, objective in product(request.networks, request.machines, request.objectives):
        question = NetworkFused(network, machine, objective, cost_model="hierarchy", factors=request.factors)
        names = network.name, question.machine.name, objective
        proof: FusedResult | None = None
        if request.proof is not None and not stop.is_set():
            begun(f"{' '.join(names)}: {OPTIMUM}")
            proof, row = _run(question, names, (OPTIMUM, 0), _asked(request, None, 0, stop), None)
            yield row
        for method in request.methods:
            for seed in range(request.seeds if is_stochastic(made[method]) else 1):
                if stop.is_set():
                    return
                begun(f"{' '.join(names)}: {method}, seed {seed}")
                yield _run(question, names, (method, seed), _asked(request, method, seed, stop), proof)[1]


def _asked(request: FusedRequest, method: str | None, seed: int, stop: threading.Event) -> SearchRequest:
    seconds = request.proof if method is None else request.seconds
    return SearchRequest(method, Budget(seconds, 0.0, NEVER, request.threads, seed), stop)


def _run(
    question: NetworkFused,
    names: tuple[str, str, str],
    run: tuple[str, int],
    asked: SearchRequest,
    proof: FusedResult | None,
) -> tuple[FusedResult, FusedRow]:
    """One run and its row.

    Parameters
    ----------
    question, names : of the network, the machine and the objective
    run, asked : method and seed, and how it is to be answered
    proof : what the search proved of the same question
    """
    began = time.process_time()
    result = question.answer(asked)
    seconds = time.process_time() - began
    bound = max(result.bound, result.bound if proof is None else proof.bound)
    gap = None if result.value is None or not bound else result.value / bound - 1
    groups = sum(len(group.layers) > 1 for group in result.record.groups)
    proven = (result if proof is None else proof).optimal
    unfused = result.record.totals.unfused_value
    return result, FusedRow(
        *names, *run, result.value, bound, gap, proven, unfused, groups, round(seconds, 2)
    )
