"""Chains of segments by every approach: a cell is what one method comes to by the closed form alone."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median_low
from typing import TYPE_CHECKING, Any, Final

from studies.papers.figure import Data, Row
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.methods import ChainMethod, PipelineMethod
from tilewright.report.plots.style import canvas
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import prepare
from tilewright.workloads.catalog import resolve_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS: Final = ("alexnet", "mobilenet-v1", "vgg16", "googlenet", "resnet50", "mlp", "lstm")
"""The paper's seven, in the order of its tables."""
SYSTEM: Final = "kapla-16x16[engines=8x8,array=16x16,buffer=512]"
"""As many PEs as the paper's machine; buffers that are large enough for the leaves of trees."""
SPACE: Final = "orders=own,spatial=4,temporal=4"
"""Segments that all approaches choose from; nn-dataflow and Tangram have those side by side only."""
PROVEN: Final = f"chains[{SPACE}]"
KAPLA: Final = f"kapla[{SPACE}]"
WAYS: Final = {
    "B": "nn-dataflow[spatial=4]",
    "S": f"directives[{SPACE},splits=on]",
    "R": f"random[{SPACE},splits=on]",
    "M": f"autotvm[{SPACE}]",
    "T": "tangram[spatial=4]",
    "K": KAPLA,
}
"""Methods by the letters of the paper, and T for Tangram."""
OTHERS: Final = {
    "K, loose estimate": f"kapla[{SPACE},estimate=aggregate]",
    "R, 0.03": f"random[{SPACE},splits=on,probability=0.03]",
    "M, 2 batches": f"autotvm[{SPACE},iterations=2]",
}
"""The same with one option changed: the suspected cause of a difference."""
CHANGES: Final = {
    "K": "the loose estimate that the text describes",
    "R": "a probability of 0.03 instead of 0.1",
    "M": "two batches of a layer instead of eight",
}
"""What these options are, by the ways that they change."""
SMOKE: Final[Mapping[str, Any]] = {
    "networks": ("mlp",),
    "batch": 1,
    "seconds": 0.1,
    "learning": 0.0,
    "seeds": 1,
}
FULL: Final[Mapping[str, Any]] = {"networks": NETWORKS, "batch": 64, "seconds": 3600.0, "seeds": 5}


def sizes(*networks: str) -> dict[str, Mapping[str, Any]]:
    """Values of the three sizes; short runs have these networks."""
    short = {"networks": networks, "batch": 4, "seconds": 20.0, "learning": 10.0, "seeds": 5}
    return {"smoke": SMOKE, "short": short, "full": FULL}


TRAINED: Final = sizes("alexnet", "mobilenet-v1", "mlp", "lstm")
INFERRED: Final = sizes("alexnet", "mobilenet-v1", "resnet50", "mlp", "lstm")


def chosen(
    network: str, system: str, batch: int, objective: str, method: str, seed: int, seconds: float
) -> dict[str, Any]:
    """The chain that a method chooses; a value of 0 stands for none.

    Parameters
    ----------
    network : of the catalog, ``:training`` behind it for its training graph
    system, batch, objective : of the problem
    method : with its options
    seed : of all chance
    seconds : of the processor, after which the method stops where it is
    """
    planner = METHODS.make(method)
    assert isinstance(planner, PipelineMethod)
    prepare(method)
    machine = load_tiled_machine(system)
    problem = TiledProblem(resolve_model(network, 1), machine, tiled_objective(objective), batch=batch)
    form, begun = planner.form_of(problem, seed), time.process_time()
    answer = planner.choose(form, seed, lambda: time.process_time() - begun > seconds, lambda chain: None)
    chain = answer.chain
    return {
        "value": 0.0 if chain is None else form.value(chain.energy, chain.cycles),
        "bound": answer.bound,
        "proven": answer.proven,
        "seconds": time.process_time() - begun,
        "schemes": answer.schemes,
        "valid": answer.valid,
        "kept": answer.kept,
        "late": answer.note.startswith("the time"),
    }


def segments(network: str, batch: int, method: str) -> int:
    """How many schemes a method on chains chooses from."""
    planner = METHODS.make(method)
    assert isinstance(planner, ChainMethod)
    machine = load_tiled_machine(SYSTEM)
    problem = TiledProblem(resolve_model(network, 1), machine, tiled_objective("energy"), batch=batch)
    spaces = planner.slicing.spaces(planner.form_of(problem, 0))
    return sum(1 for _, space in spaces for start in space.starts[:-1] for _ in space.schemes(start))


def cell(
    study: Study, network: str, objective: str, method: str, seed: int = 0, **other: Any
) -> dict[str, Any]:
    """A cell of a figure, on the paper's machine and the size's batch unless said otherwise.

    Parameters
    ----------
    study : whose size, batch and seconds hold; ``learning`` has those of M where they are others
    network, objective, method, seed : as of `chosen`
    other : ``system`` or ``batch``
    """
    limit = "learning" if method.startswith("autotvm") else "seconds"
    values: dict[str, Any] = {"system": SYSTEM, "batch": study["batch"], **other}
    known: dict[str, Any] = study.cell(
        "chain",
        chosen,
        network=network,
        objective=objective,
        method=method,
        seed=seed,
        seconds=study.values.get(limit, study["seconds"]),
        **values,
    )
    return known


def above(value: float, least: float) -> float:
    """Percent by which a value is above another; 0 where rounding alone parts them, not a number where one is
    missing.
    """
    if value <= 0 or least <= 0:
        return float("nan")
    return 100 * (value / least - 1) if abs(value - least) > 1e-9 * least else 0.0


def contest(study: Study, objective: str, kind: str = "", others: Iterable[str] = ()) -> list[Row]:
    """Every approach on every network: percent above the proven best chain, and seconds.

    Parameters
    ----------
    study : whose networks, batch and seconds hold
    objective : ``energy`` or ``makespan``
    kind : ``:training`` or nothing, behind the networks' names
    others : of `OTHERS`
    """
    rows: list[Row] = []
    for network in study["networks"]:
        proven = cell(study, f"{network}{kind}", objective, PROVEN)
        row: Row = {
            "network": network,
            "least": proven["value"] / (1e9 if objective == "energy" else 1e6),
            "state": "proven" if proven["proven"] else "not proven",
        }
        spent = {"proven [s]": proven["seconds"]}
        for way, method in {**WAYS, **{name: OTHERS[name] for name in others}}.items():
            seeds = range(study["seeds"] if way.startswith("R") else 1)  # the median of R
            own = [cell(study, f"{network}{kind}", objective, method, seed) for seed in seeds]
            row[way] = above(median_low([answer["value"] for answer in own]), proven["value"])
            spent[f"{way} [s]"] = median_low([answer["seconds"] for answer in own])
            if way == "M":
                place = {"network": f"{network}{kind}", "batch": study["batch"]}
                there = study.cell("segments", segments, **place, method=method)
                row["segments that M priced"] = f"{own[0]['schemes']} of {there}"
                row["time was up"] = own[0]["late"]
        rows.append({**row, **spent})
    return rows


def shown(rows: Sequence[Row]) -> list[Row]:
    """The rows for the page: percentages, and how far M came."""
    hidden = {name for row in rows for name in row if name.endswith("[s]")} | {"time was up"}
    return [{name: value for name, value in row.items() if name not in hidden} for row in rows]


def known(values: Iterable[float]) -> list[float]:
    """Those that are numbers."""
    return [value for value in values if value == value]


def mean(values: Iterable[float]) -> float:
    """Of the numbers among the values; not a number where there is none."""
    there = known(values)
    return fmean(there) if there else float("nan")


def losses(data: Data, way: str) -> list[float]:
    """Percent of a way above the proven best, where it has a chain."""
    return known(row[way] for row in data["rows"])


def together(data: Data, *ways: str) -> list[float]:
    """The mean loss of some ways over the networks on which all of them have a chain."""
    both = [row for row in data["rows"] if all(row[way] == row[way] for way in ways)]
    return [mean(row[way] for row in both) for way in ways]


def worst(data: Data, way: str) -> float:
    """The most of these; not a number where there is none."""
    return max(losses(data, way), default=float("nan"))


def changed(data: Data) -> str:
    """What changing one option does to the mean loss of a way, where both have a chain, in words."""
    words = []
    for way, what in CHANGES.items():
        other = next(name for name in OTHERS if name.startswith(way))
        before, after = together(data, way, other)
        words.append(f"{what} alone takes {way}'s mean loss from {before:.1f} to {after:.1f} %")
    text = "; ".join(words)
    return f"{text[:1].upper()}{text[1:]}."


def proven(data: Data) -> str:
    """How many of the networks have a proven best chain."""
    count = sum(row["state"] == "proven" for row in data["rows"])
    return (
        f"The best chain is proven on {count} of {len(data['rows'])} networks, in "
        f"{max(row['proven [s]'] for row in data['rows']):.1f} s at most: no chain of these is better."
    )


def reached(data: Data) -> str:
    """How far M came."""
    late = [row for row in data["rows"] if row["time was up"]]
    if not late:
        return "M priced all segments on every network."
    none = sum(row["M"] != row["M"] for row in late)
    return f"M was stopped by its limit on {len(late)} of {len(data['rows'])} networks" + (
        f", on {none} before it had a chain." if none else "."
    )


def bars(data: Data, label: str, printed: Mapping[str, float] | None = None) -> Figure:
    """Every way's value over the least, by network and on average, as in the paper.

    Parameters
    ----------
    data : rows of `contest`
    label : of the axis
    printed : percent above the optimum by way, as the text prints them of the average
    """
    figure, axes = canvas(1, 2.8)
    ways = [*WAYS, *(name for name in OTHERS if name.startswith("K") and name in data["rows"][0])]
    series = {way: [1 + row[way] / 100 for row in data["rows"]] for way in ways}
    means = {way: [*own, 1 + mean(losses(data, way)) / 100] for way, own in series.items()}
    apart = [float("nan")] * len(data["rows"])
    dashes = {way: [*apart, 1 + own / 100] for way, own in (printed or {}).items()}
    grouped_bars(axes[0], [*(row["network"] for row in data["rows"]), "mean"], means, dashes)
    axes[0].set_ylim(0.9)
    axes[0].set_ylabel(label)
    legend(axes[0], 8)
    return figure
