"""Design spaces explored: the best machine of a grid, proven."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.api.arguments import SearchRequest, interruptible, named_arguments, read_budget
from tilewright.api.live import LiveDocument, Subject, as_listeners
from tilewright.api.mapping.exploration_document import ExplorationDocument
from tilewright.api.mapping.layer import Layer
from tilewright.api.mapping.machine import Machine, machine_of
from tilewright.api.mapping.network import Network, network
from tilewright.api.mapping.phased import PhasesAsked, phased
from tilewright.formulation.limits import Limits
from tilewright.formulation.network_objective import parse_network_objective
from tilewright.formulation.stopping import NEVER, Stop
from tilewright.foundation.errors import InputError
from tilewright.foundation.processes import available_cores
from tilewright.hardware.mapping.design_caps import parse_caps
from tilewright.hardware.mapping.design_cost import design_costs
from tilewright.hardware.mapping.design_space import design_space
from tilewright.hardware.mapping.variations import Variation, check_varies, variation
from tilewright.report.records.mapping.build import key_gap
from tilewright.report.records.mapping.explore import ExploreSettings
from tilewright.report.records.mapping.explore_build import ExploreQuestion, explore_document
from tilewright.report.records.mapping.sweep import PREFIX
from tilewright.solvers.mapping.explore.cells import CELLS, Asked, Cell, Reported, answers_here
from tilewright.solvers.mapping.explore.goals import Goal
from tilewright.solvers.mapping.explore.search import LAYER_SECONDS, Answers, Exploration, Watcher
from tilewright.solvers.mapping.explore.search import explore as search_designs
from tilewright.solvers.mapping.explore.store import ExploreStore
from tilewright.solvers.mapping.methods import method as method_of
from tilewright.solvers.mapping.networks.network_problem import Factors, network_problem
from tilewright.solvers.mapping.solve import AUTO

FEW_CELLS = 100
"""With fewer layers on designs than this, starting worker processes takes longer than it saves."""


Vary = (
    MappingABC[str, object] | MappingABC[tuple[str, ...], object] | MappingABC[str | tuple[str, ...], object]
)
"""Values by the field, or by the fields that change together."""


@dataclass(frozen=True)
class ExploreRequest:
    """The question for the best machine of a design space; `explore` explains its parameters."""

    model: Layer | Network | str | Path
    machine: Machine | str | Path
    axes: tuple[Variation, ...]
    objective: str = "edp"
    batch: int | None = None
    layers: tuple[str, ...] = ()
    all_operators: bool = False
    constraints: tuple[str, ...] = ()
    cost_model: str | None = None
    factors: Factors | None = None
    against: str | None = None
    each_layer: bool = False
    every: bool = False
    values: bool = False
    solver: str = AUTO
    seconds: float | None = None
    gap: float = 0.0
    until: Stop = NEVER
    layer_limit: float = LAYER_SECONDS
    jobs: int | None = None
    cluster: str | None = None
    store: Path | None = None
    phases: str | None = None
    lengths: int | None = None

    def answer(self, request: SearchRequest) -> ExplorationDocument:
        """What `explore` calls: method and limits are the request's."""
        budget = request.budget
        asked = replace(
            self,
            solver=request.method or self.solver,
            seconds=budget.seconds,
            gap=budget.gap,
            until=budget.until,
        )
        live = LiveDocument[ExplorationDocument](
            Subject(self.model.name if isinstance(self.model, Layer | Network) else str(self.model)),
            None,
            request.listeners,
        )
        live.begin()
        return live.end(answered(asked, request.stop, budget.started, live))


def explore(
    model: Layer | Network | str | Path,
    machine: Machine | str | Path,
    vary: Vary,
    objective: str = "edp",
    *,
    batch: int | None = None,
    layers: Sequence[str] = (),
    all_operators: bool = False,
    constraints: Iterable[str] = (),
    cost_model: str | None = None,
    factors: Factors | None = None,
    against: str | None = None,
    each_layer: bool = False,
    every: bool = False,
    values: bool = False,
    method: str | None = None,
    stop: Stop | None = None,
    layer_limit: float = LAYER_SECONDS,
    jobs: int | None = None,
    cluster: str | None = None,
    store: str | os.PathLike[str] | None = None,
    watcher: Watcher | None = None,
    phases: str | None = None,
    lengths: int | None = None,
) -> ExplorationDocument:
    """Find the best machine among all that come of varying some fields, and prove it.

    ::

        exploration = tw.explore("resnet50", "dmazerunner-256", {"levels.SPM.capacity": "16kB..1MB*2"})

    The value of a design is the objective of total energy and total cycles, each layer as often as the
    network has it.  Ctrl-C returns what is known.

    Parameters
    ----------
    vary : by field, a text such as ``16kB..1MB*2``, ``8..64+8`` or ``8 GB/s,16 GB/s``, or a list of values as
        a machine file writes them; several fields that change together are a tuple, or one text with colons
    objective : ``energy``, ``cycles``, ``edp``, ``ed2p`` or ``E^a*D^b``; with ``sum-`` before it, as in
        ``sum-edp``, a design's value is the sum of the layers' own objectives
    against : ``capacity`` (bytes), ``pes`` or a formula of sizes: prove the whole front of objective and cost
    constraints : on mappings, as for ``map``; on designs ``area<=10mm2``, ``capacity<=1MB``, ``pes<=256``
    each_layer : prove the best design of every layer alone too
    every : search every design, beaten ones too, so that each has a value
    values : a value for beaten designs too, each from a short search: an upper bound
    method : an exact solver
    stop : ``seconds(60)`` for the whole call, ``gap(0.01)`` for each layer
    layer_limit : seconds for one layer on one design
    jobs : worker processes; by default one per core, or none for few cells
    cluster : address of a Dask scheduler, instead
    store : SQLite file in which proofs are kept and from which they are taken; where it fills up, the
        document's ``unsaved`` says so
    watcher : notified of every cell
    phases : how often a language model reads a prompt and adds a token, such as ``prefill:1,decode:200``; the
        cache grows by a token with every step
    lengths : so many steps are searched, 5 by default; the others are bounded by those

    Raises
    ------
    InputError : for whatever is wrong with an argument, before anything is searched
    """
    budget = read_budget(stop, 1, 0)
    with named_arguments(), interruptible() as event:
        axes = tuple(variation(field, values) for field, values in vary.items())
        check_varies(axes)
        own = [axis.title for axis in axes if any(field.startswith(PREFIX) for field in axis.fields)]
        if own:
            raise InputError("vary", own[0], "a parameter of the model, expected tw.sweep for it")
        question = ExploreRequest(
            model=model,
            machine=machine,
            axes=axes,
            objective=objective,
            batch=batch,
            layers=tuple(layers),
            all_operators=all_operators,
            constraints=tuple(constraints),
            cost_model=cost_model,
            factors=factors,
            against=against,
            each_layer=each_layer,
            every=every,
            values=values,
            layer_limit=layer_limit,
            jobs=jobs,
            cluster=cluster,
            store=None if store is None else Path(store),
            phases=phases,
            lengths=lengths,
        )
        return question.answer(SearchRequest(method, budget, event, listeners=as_listeners(watcher)))


def answered(
    request: ExploreRequest, stop: threading.Event, started: float, watcher: Watcher | None = None
) -> ExplorationDocument:
    """Carry out a request.

    Parameters
    ----------
    stop : ends it with what is known
    started : the moment from which its time counts
    watcher : notified of goals and cells
    """
    question = stated_question(request)
    settings, objective = question.settings, question.stated.objective
    asked = Asked(
        str(objective),
        question.stated.cost_model,
        request.factors,
        question.stated.constraints,
        request.solver,
        key_gap(objective, request.gap),
    )
    with ExitStack() as stack:
        kept = None if request.store is None else stack.enter_context(ExploreStore(request.store))
        usable = sum(design.engine is not None for design in question.space.designs)
        workers = _workers(request.jobs, usable * len(question.layers))
        answers = _answers(workers, request.cluster)
        limits = Limits(seconds=settings.time_limit_s, stop=stop, started=started, until=request.until)
        exploration = _explored(question, asked, answers, limits, kept, workers, watcher)
        unsaved = None if kept is None else kept.failure
    document = explore_document(question, exploration, time.monotonic() - started)
    return ExplorationDocument(document, unsaved=unsaved)


def stated_question(request: ExploreRequest) -> ExploreQuestion:
    """The question that a request asks; raises ``InputError`` for whatever is wrong with it."""
    if not request.layer_limit > 0:
        raise InputError("--layer-limit", None, f"expected a time above 0, got {request.layer_limit}")
    if not method_of(request.solver).exact:
        raise InputError("--solver", None, f"{request.solver} proves nothing, expected an exact solver")
    objective = parse_network_objective(request.objective)
    goal = objective.layer
    if goal.root != 1:
        message = f"{request.objective}: expected whole powers, whose sums over layers are exact"
        raise InputError("--objective", None, message)
    base = machine_of(request.machine)
    caps, constraints = parse_caps(request.constraints)
    space = design_space(*base.description, base.name, request.axes, caps)
    usable = [design for design in space.designs if design.engine is not None]
    model = request.model
    what = model if isinstance(model, Layer | Network) else network(model, request.batch)
    selected = (
        what.selected if isinstance(what, Layer) else what.select(request.layers, request.all_operators)
    )
    phases = None
    if request.phases is not None:
        engines = [design.engine for design in usable if design.engine is not None]
        name = what.model if isinstance(what, Layer) else what.name
        asked = PhasesAsked(request.phases, request.lengths, request.layers, bool(constraints))
        phases, selected = phased(name, asked, engines, request.cost_model, (request.factors, None, None))
    engine = usable[0].engine
    assert engine is not None
    stated = network_problem(selected, engine, goal, constraints, request.cost_model, request.factors)
    settings = ExploreSettings(
        solver=request.solver,
        gap=request.gap,
        time_limit_s=request.seconds,
        layer_limit_s=request.layer_limit,
        every=request.every,
        values=request.values,
        each_layer=request.each_layer,
        against=request.against,
        caps=[cap.text for cap in caps],
    )
    costs = None if request.against is None else tuple(design_costs(request.against, usable))
    name = what.model if isinstance(what, Layer) else what.name
    return ExploreQuestion(
        space, name, what.batch, tuple(selected), objective, stated, settings, costs, phases
    )


def _explored(
    question: ExploreQuestion,
    asked: Asked,
    answers: Answers,
    limits: Limits,
    store: ExploreStore | None,
    workers: int,
    watcher: Watcher | None,
) -> Exploration:
    settings = question.settings
    counts = tuple(layer.count for layer in question.layers)
    least = tuple(layer.least_count for layer in question.layers)
    summed = question.objective.summed
    goals = [Goal(counts, least, summed, costs=question.costs)]
    if settings.every:
        goals.insert(0, Goal(counts, least, summed, every=True))
    if settings.each_layer:
        units = range(len(counts))
        goals += [Goal(tuple(int(unit == layer) for unit in units), layer=layer) for layer in units]
    if settings.values:
        goals.append(Goal(counts, least, summed, brief=True))
    return search_designs(
        question.space.designs,
        question.layers,
        asked,
        goals,
        answers,
        limits,
        store=store,
        layer_seconds=settings.layer_limit_s,
        jobs=workers,
        watcher=watcher,
    )


def _workers(jobs: int | None, cells: int) -> int:
    if jobs is not None and jobs < 1:
        raise InputError("--jobs", None, f"expected at least 1, got {jobs}")
    return jobs or (1 if cells < FEW_CELLS else available_cores())


def _answers(workers: int, cluster: str | None) -> Answers:
    if cluster is not None:
        from tilewright.foundation.cluster import cluster_answers, connected

        def sent(cells: Iterable[Cell], stop: threading.Event) -> Iterator[tuple[Cell, Reported]]:
            client = connected(cluster)  # closed at the end; the next goal has its own
            return cluster_answers(CELLS, client, cells, stop)

        return sent
    if workers == 1:
        return answers_here
    from tilewright.foundation.pool import local_answers

    def pooled(cells: Iterable[Cell], stop: threading.Event) -> Iterator[tuple[Cell, Reported]]:
        return local_answers(CELLS, workers, cells, stop)

    return pooled
