"""Heuristics for fused mappings beside the proven optimum, network by network.

Every run is stored as its document the moment it ends; what the store has is not run again.  Seconds are
those of the processor, of all threads of this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from tilewright import __version__
from tilewright.api.arguments import Budget, SearchRequest
from tilewright.api.catalog import made_method
from tilewright.api.mapping.fusion import Factors, FusedResult, NetworkFused
from tilewright.benchmarks.fused_store import FusedRun, FusedStore
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
    request: FusedRequest,
    store: FusedStore,
    stop: threading.Event,
    begun: Callable[[str], None] = lambda text: None,
    *,
    fresh: bool = False,
) -> Iterator[FusedRow]:
    """Every run, each proof before the heuristics on the same network; ends early where it is stopped.

    Parameters
    ----------
    request : what is measured
    store : has the runs of earlier calls, and gets those of this one
    stop : ends the run at hand, which still gives its row but is not stored, and leaves out all others
    begun : hears of every run that begins
    fresh : run again what the store has
    """
    made = {method: made_method(method, "fused", "--method") for method in request.methods}

    def ran(
        question: NetworkFused, names: tuple[str, str, str], method: str, seed: int
    ) -> tuple[FusedResult, float]:
        is_proof = method == OPTIMUM
        limit = request.proof if is_proof else request.seconds
        version = __version__ if is_proof else made[method].version
        run = FusedRun(question, method, version, seed, limit, request.threads)
        known = None if fresh else store.answer(run)
        if known is not None:
            return known
        begun(f"{' '.join(names)}: {method}" + ("" if is_proof else f", seed {seed}"))
        budget = Budget(limit, 0.0, NEVER, request.threads, seed)
        began = time.process_time()
        result = question.answer(SearchRequest(None if is_proof else method, budget, stop))
        seconds = time.process_time() - began
        if not stop.is_set():
            store.put(run, result, seconds)
        return result, seconds

    for network, machine, objective in product(request.networks, request.machines, request.objectives):
        question = NetworkFused(network, machine, objective, cost_model="hierarchy", factors=request.factors)
        names = network.name, question.machine.name, objective
        proof: FusedResult | None = None
        if request.proof is not None and not stop.is_set():
            proof, seconds = ran(question, names, OPTIMUM, 0)
            yield _row(names, (OPTIMUM, 0), proof, None, seconds)
        for method in request.methods:
            for seed in range(request.seeds if is_stochastic(made[method]) else 1):
                if stop.is_set():
                    return
                result, seconds = ran(question, names, method, seed)
                yield _row(names, (method, seed), result, proof, seconds)


def _row(
    names: tuple[str, str, str],
    run: tuple[str, int],
    result: FusedResult,
    proof: FusedResult | None,
    seconds: float,
) -> FusedRow:
    """One run's row.

    Parameters
    ----------
    names : of the network, the machine and the objective
    run, result, seconds : method and seed, and what came of it
    proof : what the search proved of the same question
    """
    bound = max(result.bound, result.bound if proof is None else proof.bound)
    gap = None if result.value is None or not bound else result.value / bound - 1
    groups = sum(len(group.layers) > 1 for group in result.record.groups)
    proven = (result if proof is None else proof).optimal
    unfused = result.record.totals.unfused_value
    return FusedRow(*names, *run, result.value, bound, gap, proven, unfused, groups, round(seconds, 2))
