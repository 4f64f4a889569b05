"""Sweeps: parameters of a model vary, beside fields of a machine; points share layers that are solved."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from tilewright.api.arguments import SearchRequest, interruptible, named_arguments, read_budget
from tilewright.api.live import LiveDocument, Subject, as_listeners
from tilewright.api.mapping.exploration import ExploreRequest, Vary, answered, stated_question
from tilewright.api.mapping.machine import Machine
from tilewright.api.mapping.network import Network, network
from tilewright.api.mapping.sweep_document import Sweep
from tilewright.formulation.limits import Limits
from tilewright.formulation.stopping import Stop
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.variations import FLAG, Variation, check_variations, check_varies, variation
from tilewright.report.records.mapping.sweep import PREFIX, places, sweep_document
from tilewright.solvers.mapping.explore.search import LAYER_SECONDS, Watcher
from tilewright.solvers.mapping.networks.network_problem import Factors
from tilewright.workloads.families import parameters_of, with_parameters

MOST_POINTS = 1000


def split_axes(axes: Sequence[Variation]) -> tuple[tuple[Variation, ...], tuple[Variation, ...]]:
    """Axes of a model's parameters, and those of a machine's fields.

    Raises
    ------
    InputError : for an axis that varies both together
    """
    check_varies(axes)
    check_variations(axes)
    mixed = [axis for axis in axes if len({field.startswith(PREFIX) for field in axis.fields}) > 1]
    if mixed:
        message = "varies model and machine together, expected an axis for each"
        raise InputError(FLAG, mixed[0].title, message)
    own = tuple(axis for axis in axes if axis.fields[0].startswith(PREFIX))
    return own, tuple(axis for axis in axes if axis not in own)


@dataclass(frozen=True)
class SweepRequest:
    """The question for the best machine of every point of a model's grid; `sweep` explains its parameters.

    Parameters
    ----------
    question : of one point; its model is a text, and a field that varies takes the place of what that states
    axes : the parameters that vary
    """

    question: ExploreRequest
    axes: tuple[Variation, ...]

    def answer(self, request: SearchRequest) -> Sweep:
        """What `sweep` calls: method and limits are the request's."""
        model, networks = self.networks()
        grid = places(self.axes)
        budget = request.budget
        live = LiveDocument[Sweep](Subject(f"{model}, {len(grid)} points"), None, request.listeners)
        limits = Limits(seconds=budget.seconds, stop=request.stop, started=budget.started, until=budget.until)
        live.begin()
        explorations = []
        with tempfile.TemporaryDirectory() as folder:
            asked = replace(
                self.question,
                solver=request.method or self.question.solver,
                gap=budget.gap,
                until=budget.until,
                store=self.question.store or Path(folder) / "solved.sqlite",
            )
            for number, (fields, point) in enumerate(zip(grid, networks, strict=True)):
                if limits.expired:
                    break
                # A point has its share of what is left; what it leaves goes to those behind it.
                seconds = limits.share(1 / (len(grid) - number)).seconds
                stated = replace(asked, model=point, seconds=seconds)
                document = answered(stated, request.stop, budget.started, live)
                explorations.append((fields, document.record))
        wall = time.monotonic() - budget.started
        return live.end(Sweep(sweep_document(model, self.axes, explorations, wall)))

    def networks(self) -> tuple[str, list[Network]]:
        """The model's text, and the network of every point.

        Raises
        ------
        InputError : for a model without parameters, one that it does not have, and values that it cannot have
        """
        asked = self.question
        model = str(asked.model) if asked.batch is None else with_batch(str(asked.model), asked.batch)
        known = [parameter.name for parameter in parameters_of(model)]
        if not known:
            raise InputError(FLAG, self.axes[0].title, f"{model} has no parameters, as llama3 has")
        for field in (field for axis in self.axes for field in axis.fields):
            name = field.removeprefix(PREFIX)
            if name not in known:
                raise InputError(FLAG, field, unknown_name(name, known))
        grid = places(self.axes)
        if len(grid) > MOST_POINTS:
            raise InputError(FLAG, None, f"{len(grid):,} points, expected at most {MOST_POINTS:,}")
        networks = [network(with_parameters(model, fields)) for fields in grid]
        for point in networks:  # whatever is wrong with the question shows before anything is searched
            stated_question(replace(asked, model=point, batch=None))
            if asked.phases is None:
                break
        return model, networks


def with_batch(model: str, batch: int) -> str:
    """A model's text that states its batch."""
    return with_parameters(model, {"batch": batch})


class SweepDemands(TypedDict, total=False):
    """What `sweep` takes as `explore` does, which explains them."""

    layers: Sequence[str]
    constraints: Iterable[str]
    cost_model: str | None
    factors: Factors | None
    layer_limit: float
    jobs: int | None
    cluster: str | None
    store: str | os.PathLike[str] | None
    phases: str | None
    lengths: int | None


def sweep(
    model: str,
    machine: Machine | str | Path,
    vary: Vary,
    objective: str = "edp",
    *,
    batch: int | None = None,
    method: str | None = None,
    stop: Stop | None = None,
    watcher: Watcher | None = None,
    **asked: Unpack[SweepDemands],
) -> Sweep:
    """Find the best machine for every point of a grid of a model's parameters.

    ::

        tw.sweep("llama3[phase=decode,cached=2047]", "tpu-v4i", {"model.batch": "1..256*2"}, "cycles")

    Layers that several points have are solved once.  Ctrl-C returns the points that are known.

    Parameters
    ----------
    model : a network with parameters
    vary : as for `explore`, with parameters of the model named ``model.NAME``; fields of the machine may vary
        beside them, and every point then has a best machine
    objective, batch, method, stop, watcher, asked : as for `explore`, in `SweepDemands`

    Raises
    ------
    InputError : for whatever is wrong with an argument, before anything is searched
    """
    budget = read_budget(stop, 1, 0)
    with named_arguments(), interruptible() as event:
        axes, machines = split_axes([variation(field, values) for field, values in vary.items()])
        if not axes:
            raise InputError(FLAG, None, f"expected a parameter of the model, such as {PREFIX}batch")
        store = asked.get("store")
        question = ExploreRequest(
            model=model,
            machine=machine,
            axes=machines,
            objective=objective,
            batch=batch,
            layers=tuple(asked.get("layers", ())),
            constraints=tuple(asked.get("constraints", ())),
            cost_model=asked.get("cost_model"),
            factors=asked.get("factors"),
            layer_limit=asked.get("layer_limit", LAYER_SECONDS),
            jobs=asked.get("jobs"),
            cluster=asked.get("cluster"),
            store=None if store is None else Path(store),
            phases=asked.get("phases"),
            lengths=asked.get("lengths"),
        )
        request = SearchRequest(method, budget, event, listeners=as_listeners(watcher))
        return SweepRequest(question, axes).answer(request)
