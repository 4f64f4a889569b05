"""Machine code that plans need, compiled once per installation before the time of a search begins.

Without it no plan can be made or judged, so that nothing could be searched meanwhile.  Compiling takes half
a minute or more, longer than many limits: it is told as a phase and does not count against the time limit.
What was kept by an earlier call is loaded within the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from tilewright.formulation.compiled import is_kept
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled import (
    completion_kernel,
    copies_kernel,
    counting_sort,
    eviction_kernel,
    legality_kernel,
    paths,
    plan_kernel,
    ports_kernel,
    timing_kernel,
    uses_kernel,
)
from tilewright.formulation.scheduling.tiled.completion import complete
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import (
    levelling_kernel,
    levelling_loads,
    lists,
    partitions,
    placement,
)
from tilewright.heuristics.scheduling.tiled.levelling import levelled
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS
from tilewright.solvers.background import Background
from tilewright.solvers.scheduling.tiled import ancestors
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.exact import label_kernel, round_length_kernel, sequence_kernel
from tilewright.solvers.scheduling.tiled.exact.counts import Counts, twins
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.sequences import searched
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network

PHASE: Final = "compiling machine code, once per installation; the time limit begins after it"

MODULES: Final = (
    ancestors,
    completion_kernel,
    copies_kernel,
    counting_sort,
    eviction_kernel,
    label_kernel,
    legality_kernel,
    levelling_kernel,
    levelling_loads,
    lists,
    partitions,
    paths,
    placement,
    plan_kernel,
    ports_kernel,
    round_length_kernel,
    sequence_kernel,
    timing_kernel,
    uses_kernel,
)
"""Modules with machine code that searches in this room use."""

_STEP = 0.05
_starting = threading.Lock()
_running: list[Background[None]] = []
_wanted = threading.Event()
_ready = threading.Event()


def is_compiled() -> bool:
    """Whether the machine code is there, in this process or kept by an earlier one, made of today's text."""
    if _ready.is_set():
        return True
    return all(any(is_kept(one) for one in vars(module).values()) for module in MODULES)


def counted_from_now_on(limits: Limits, phase: Callable[[str], None]) -> Limits:
    """The limits of a search, begun anew after compiling where anything had to be compiled.

    A stop that the user asks for ends the wait; what is being compiled then is compiled to its end, since the
    interpreter cannot end in the middle of it.

    Parameters
    ----------
    phase : told before compiling begins
    """
    if is_compiled():
        return limits
    begun = limits.clock()
    phase(PHASE)
    _wanted.set()
    with _starting:
        if not _running or not _running[0].is_alive:
            _running[:] = [Background(_compile, "compiling", daemon=False)]
            _running[0].start()
    company = _running[0]
    while company.is_alive:
        company.join(_STEP)
        if limits.stop.is_set():
            _wanted.clear()
            break
    company.raise_failure()
    return replace(limits, started=limits.started + limits.clock() - begun)


def _compile() -> None:
    for _ in _calls():
        if not _wanted.is_set():
            return
    _ready.set()


def _calls() -> Iterator[None]:
    """Call everything once, in the types that searches have, on a network of two layers."""
    operator = conv2d(k=16, c=16, r=3, s=3, h=4, w=4, pad=1)
    layers = [Layer(name, operator, "compiling") for name in ("a", "b")]
    network = Network("two layers", layers, [Link("a", "b", "I", "x", 256)])
    problem = TiledProblem(network, load_tiled_machine("atomic-2x2"), tiled_objective("makespan"))
    machine = problem.machine
    dag = problem.dag([AtomSize(2, 4, 8, 16)] * 2)
    yield
    engine, step = lists.layer_sequential(dag, machine)
    lists.list_order(dag, machine)
    yield
    for how in MAPPINGS:
        placement.place(dag, machine, step, how)
        yield
    partitions.pipeline(problem, partitions.layer_work(problem), 2, room=0.5)
    yield
    dag_bounds(dag, machine)
    yield
    instance = RoundInstance(dag, machine)
    searched(Counts(instance, twins(instance)), 1, lambda: False, lambda _: None, labels=1)
    yield
    plan = complete(dag, machine, engine, step)
    yield
    problem.evaluate(dag, plan)
    yield
    levelled(dag, machine, plan)
