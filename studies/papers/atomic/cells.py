"""Plans of the methods on the paper's machine, and the bounds beside them.

A *setting* is a dataflow of the engines and a width of links in bytes per cycle, which the paper does not
print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan
from typing import Any, Final

from studies.papers.figure import Data, Row, Span, between
from studies.papers.study import Study
from studies.tiled import PAPER
from studies.tiled_cells import WORK, Cell, Found
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.catalog import resolve_model

STORE: Final = "tiled.sqlite"

NETWORKS: Final = {
    "vgg19": "VGG-19",
    "resnet50": "ResNet-50",
    "resnet152": "ResNet-152",
    "inception-v3": "Inception-v3",
    "nasnet-a-large": "NasNet",
    "pnasnet-5-large": "PNasNet",
    "efficientnet-b0": "EfficientNet",
    "resnet1001": "ResNet-1001",
}
"""Ours, and the paper's names; in the order of its table II."""

METHODS: Final = {
    "ls": "ls",
    "cnn-p": "cnn-p",
    "il-pipe": "il-pipe",
    "rammer": "rammer",
    "printed": PAPER,
    "atomic": "atomic",
}
"""Methods by the names that the figures give them."""

THROUGH_DRAM: Final = "cnn-p[results=dram]"
"""CNN-P with every result in DRAM, as its paper has it; here results stay on chip otherwise."""
LAYER_BY_LAYER: Final = ("cnn-p[clps=1]", "cnn-p[clps=1,results=dram]")
"""All engines for one layer after the other, sample by sample, without and with results through DRAM."""

MAIN: Final = ("kc", 16)
"""The setting of all figures."""
OTHERS: Final = (("kc", 8), ("kc", 32), ("yx", 16))
"""Those that figures 9, 11 and table II have, too."""
FLOWS: Final = {"kc": "KC", "yx": "YX"}
OPTIONS: Final = {"dataflow": tuple(FLOWS), "link": ()}


def sizes(*networks: str, seconds: float, settings: Sequence[tuple[str, int]] = ()) -> dict[str, Any]:
    """Values of the three sizes; short runs have these networks, seconds a search, and further settings."""
    smoke = {"networks": ("mlp",), "seconds": 0.1, "settings": ()}
    short = {"networks": networks, "seconds": seconds, "settings": settings}
    return {"smoke": smoke, "short": short, "full": {**short, "networks": tuple(NETWORKS), "seconds": 20.0}}


ONE_SAMPLE: Final = sizes("resnet50", "efficientnet-b0", seconds=10.0)
SCALED: Final = sizes("resnet50", "efficientnet-b0", seconds=4.0)
BATCHES: Final = sizes("resnet50", seconds=6.0, settings=OTHERS)


def places(study: Study) -> Iterator[tuple[str, str, int]]:
    """Every network in every setting; the command line may say one setting instead."""
    values = study.values
    settings = [MAIN, *values["settings"]]
    if "dataflow" in values or "link" in values:
        settings = [(values.get("dataflow", MAIN[0]), int(values.get("link", MAIN[1])))]
    for network in study["networks"]:
        for flow, link in settings:
            yield network, flow, link


def setting_of(network: str, flow: str, link: int) -> Row:
    """The columns that say where a row holds."""
    return {"network": NETWORKS.get(network, network), "dataflow": FLOWS[flow], "B/cycle": link}


def plans(
    study: Study, place: tuple[str, str, int], methods: Sequence[str], batch: int, more: str = ""
) -> list[Found]:
    """What methods come to on one network in one setting.

    Parameters
    ----------
    study : whose seconds hold
    place : network, dataflow and width of links
    methods : with their options
    batch : samples
    more : options of the machine
    """
    network, flow, link = place
    brackets = ",".join(part for part in (f"link={link}", more, _options(flow)) if part)
    machine, seconds = f"atomic-8x8[{brackets}]", float(study["seconds"])
    cells = [Cell(network, machine, method, batch, "makespan", seconds) for method in methods]
    return study.cells(WORK, STORE, cells)


def _options(flow: str) -> str:
    return "" if flow == "kc" else f"dataflow={flow}"


def cycles(plan: Found) -> float:
    """Of a plan; not a number without one."""
    return float(plan.cycles) if plan.is_plan else nan


def energy(plan: Found) -> float:
    """pJ of a plan; not a number without one."""
    return plan.total_energy if plan.is_plan else nan


def least(network: str, batch: int, link: int, options: str) -> dict[str, float]:
    """Cycles and pJ that no plan of a network undercuts, whatever its atoms."""
    brackets = ",".join(part for part in (f"link={link}", options) if part)
    machine = load_tiled_machine(f"atomic-8x8[{brackets}]")
    problem = TiledProblem(resolve_model(network, 1), machine, tiled_objective("makespan"), batch=batch)
    bounds = size_bounds(problem)
    return {"cycles": bounds.cycles, "energy": bounds.energy}


def bound(study: Study, place: tuple[str, str, int], batch: int, of: str) -> float:
    """The bound of one network in one setting.

    Parameters
    ----------
    study, place, batch : as of `plans`
    of : ``cycles`` or ``energy``
    """
    network, flow, link = place
    known = study.cell(
        "bound over all sizes", least, network=network, batch=batch, link=link, options=_options(flow)
    )
    return float(known[of])


def contest(study: Study, batch: int, of: Callable[[Found], float], unit: float) -> list[Row]:
    """All methods in every place, with the bound beside them.

    Parameters
    ----------
    study : whose networks, settings and seconds hold
    batch : samples
    of : `cycles` or `energy`
    unit : by which they are divided
    """
    rows: list[Row] = []
    for place in places(study):
        runs = plans(study, place, list(METHODS.values()), batch)
        row = setting_of(*place)
        row |= {name: of(run) / unit for name, run in zip(METHODS, runs, strict=True)}
        rows.append({**row, "bound": bound(study, place, batch, of.__name__) / unit})
    return rows


def in_setting(rows: Sequence[Row], flow: str, link: int) -> list[Row]:
    """The rows of one setting."""
    return [row for row in rows if (row["dataflow"], row["B/cycle"]) == (FLOWS[flow], link)]


def main_rows(data: Data) -> list[Row]:
    """The rows of the setting that figures have, or of the only one that was asked for."""
    return in_setting(data["rows"], *MAIN) or data["rows"]


def ratios(rows: Sequence[Row], slow: str, fast: str) -> list[float]:
    """How many times a method's figure is another's, by row."""
    return [row[slow] / row[fast] for row in rows]


def span(what: str, printed: tuple[float, float], ours: Sequence[float]) -> Span:
    """A printed range beside ours."""
    return Span(what, printed[0], min(ours), "{:.2f}", printed[1], max(ours))


Printed = Mapping[str, tuple[tuple[float, float], Callable[[Row], float]]]
"""Printed ranges by what they are of, and how a row gives ours."""


def widths(rows: Sequence[Row], printed: Printed, form: str = "{:.2f}") -> list[Row]:
    """A row per printed number: ours at every width of links, and which comes nearest.

    Parameters
    ----------
    rows : of all settings
    printed : ranges and ours
    form : of the numbers
    """
    links = sorted({row["B/cycle"] for row in rows})
    table: list[Row] = []
    for what, (ends, of) in printed.items():
        ours = {link: [of(row) for row in in_setting(rows, "kc", link)] for link in links}
        off = {
            link: max(abs(value - min(max(value, ends[0]), ends[1])) for value in own)
            for link, own in ours.items()
            if own
        }
        if len(off) < 2:
            continue
        row: Row = {"KC": what, "printed": between(ends, form)}
        row |= {f"{link} B/cycle": between(ours[link], form) for link in off}
        nearest = [str(link) for link in off if off[link] <= min(off.values())]
        table.append({**row, "nearest": " and ".join(nearest)})
    return table


def by_width(table: Sequence[Row]) -> str:
    """The nearest widths in words; empty where there is one width only."""
    if not table:
        return ""
    counts = Counter(row["nearest"] for row in table)
    words = [f"{count} of {len(table)} at {width} B/cycle" for width, count in counts.most_common()]
    return f"  Changing the width of links alone, the printed numbers are met best so: {', '.join(words)}."


def proven(rows: Sequence[Row]) -> str:
    """How far the published pipeline and our best are from what is proven."""
    best = [min(row[method] for method in METHODS) / row["bound"] for row in rows]
    printed = ratios(rows, "printed", "bound")
    return (
        f"No plan has less than the bound: the pipeline as printed takes {between(printed)} times as much, "
        f"the best plan here {between(best)} times."
    )
