"""From a request to cells: suites x machines x objectives x methods x seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product

from tilewright.api.catalog import ready_method
from tilewright.benchmarks.cells import BenchmarkTask, Entry, Part, Place, ProblemRecord
from tilewright.benchmarks.suites import Case, suite_layers
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.method import is_stochastic
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.onnx.options import OnnxOptions


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be measured.

    Parameters
    ----------
    suites, machines, objectives, methods : names
    patterns : glob patterns of layer names; empty for all
    seeds : runs of a method that draws random numbers
    seconds : time limit of a method's run
    optimum : the exact solver that proves the optimum, and its time limit; ``None`` to prove none
    factors : of all problems; ``None`` for the cost model's own choice
    threads : workers of a parallel solver within one cell
    batch : samples of networks and layers; ``None`` for their own numbers
    onnx : how ONNX models among the suites are imported
    """

    suites: tuple[str, ...]
    machines: tuple[str, ...]
    objectives: tuple[str, ...]
    methods: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    seeds: int = 5
    seconds: float = 5.0
    optimum: tuple[str, float] | None = ("auto", 60.0)
    factors: str | None = None
    threads: int = 1
    batch: int | None = None
    onnx: OnnxOptions = field(default_factory=OnnxOptions)


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells of a request, and what was left out.

    Parameters
    ----------
    refused : layers that a machine's cost model does not speak of, with its reason
    """

    entries: tuple[Entry, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Method:
    """A method as a cell knows it."""

    name: str
    version: str
    exact: bool
    seeds: int


def make_plan(request: Request) -> Plan:
    """All cells of a request, layer by layer; each proof comes before the methods on that problem.

    Raises
    ------
    InputError : for an unknown suite, machine, objective or method, with the nearest name
    """
    engines = [load_engine(name) for name in request.machines]
    objectives = [parse_objective(text) for text in request.objectives]
    methods = [_method(name, request.seeds, "--method") for name in request.methods]
    optimum = None if request.optimum is None else _method(request.optimum[0], 1, "--optimum")
    if optimum is not None and not optimum.exact:
        raise InputError("--optimum", None, f"{optimum.name} proves nothing, expected an exact solver")
    given = request.onnx.given
    if given is not None and not any(name.lower().endswith(".onnx") for name in request.suites):
        raise InputError(given, None, f"is for ONNX models, which {', '.join(request.suites)} are not")
    entries: list[Entry] = []
    refused: list[str] = []
    for name in request.suites:
        for case, engine in product(_chosen(name, request, refused), engines):
            try:
                problem = layer_problem(case.operator, engine, objectives[0], factors=request.factors)
            except InputError as error:
                refused.append(f"{name}/{case.name} on {engine.name}: {error}")
                continue
            for objective in objectives:
                entries += _entries(name, case, problem, objective, optimum, methods, request)
    if not entries:
        raise InputError("bench", None, f"no layer is left: {refused[0]}")
    return Plan(tuple(entries), tuple(refused))


def _method(text: str, seeds: int, flag: str) -> _Method:
    """A method with as many seeds as it can use: one that draws at random says that it is ``stochastic``."""
    try:
        made = ready_method(text, "mapping", flag)
        return _Method(text, made.version, made.exact, seeds if is_stochastic(made) else 1)
    except ImportError as error:
        raise InputError(flag, text, f"cannot be loaded: {error}") from None


def _chosen(name: str, request: Request, refused: list[str]) -> list[Case]:
    """The layers of a suite that are asked for; what is left out of a file joins what is refused."""
    patterns = request.patterns
    made = suite_layers(name, request.batch, request.onnx)
    refused += [f"{name}: {reason}" for reason in made.left_out]
    cases = made.cases
    names = [case.name for case in cases]
    for pattern in patterns:
        if not any(fnmatchcase(layer, pattern) for layer in names):
            hint = did_you_mean(pattern, names)
            raise InputError("--layers", pattern, f"matches no layer of {name}{hint}")
    return [
        case for case in cases if not patterns or any(fnmatchcase(case.name, pattern) for pattern in patterns)
    ]


def _entries(
    name: str,
    case: Case,
    problem: LayerProblem,
    objective: Objective,
    optimum: _Method | None,
    methods: Sequence[_Method],
    request: Request,
) -> Iterator[Entry]:
    stated = replace(problem, objective=objective)
    record, hashed = ProblemRecord.of(stated).model_dump_json(), stated.content_hash
    parts = (
        [] if optimum is None or request.optimum is None else [(Part.OPTIMUM, optimum, request.optimum[1])]
    )
    parts += [(Part.METHOD, listed, request.seconds) for listed in methods]
    for part, listed, seconds in parts:
        for seed in range(listed.seeds):
            place = Place(name, case.name, problem.engine.name, str(objective), part, listed.name, seed)
            task = BenchmarkTask(record, hashed, listed.name, listed.version, seed, seconds, request.threads)
            yield Entry(place, case.count, task)
