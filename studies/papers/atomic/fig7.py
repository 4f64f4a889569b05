"""Transfer cost of placements: the text's example, and whole networks with the least there is beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Statement, Verdict, between
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study
from studies.tiled_cells import WORK, Cell
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled.lists import zigzag
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLE = "atomic-8x8[engines=4x4]"
MAPPINGS = ("zigzag", "permutations", "matching")
METHOD = "atomic[atoms=shares,order=rules,mapping={},buffering=occupation,refine=off]"


def hops(places: list[list[int]]) -> list[int]:
    """Links between pairs of engines, both counted along the zig-zag from 1."""
    machine = load_tiled_machine(EXAMPLE)
    net, along = topology(machine), zigzag(machine)
    table = net.hops.reshape(net.places, net.places)
    return [int(table[along[a - 1], along[b - 1]]) for a, b in places]


def measure(study: Study) -> Data:
    """The example's hops, and the energy of links of every network and placement."""
    own = study.cell("hops along the zig-zag", hops, places=[[1, 7], [1, 4], [7, 4]])
    cells = {
        (network, mapping): Cell(
            network, "atomic-8x8[link=16]", METHOD.format(mapping), 1, "makespan", float(study["seconds"])
        )
        for network in study["networks"]
        for mapping in MAPPINGS
    }
    answers = dict(zip(cells, study.cells(WORK, "tiled.sqlite", list(cells.values())), strict=True))
    rows: list[Row] = []
    for network in study["networks"]:
        row: Row = {"network": network}
        for mapping in MAPPINGS:
            energy = answers[network, mapping].energy or {}
            row[mapping] = energy.get("network", float("nan"))
        rows.append(row)
    return {"rows": rows, "example": [{"A": own[0], "B": own[1] + own[2]}]}


def judge(data: Data) -> Verdict:
    """Two hops in solution A, four more in B; permutations lower the cost."""
    example = data["example"][0]
    compared: list[Compared] = [
        Number("hops of solution A", 2, example["A"], "{:.0f}"),
        Number("more of solution B", 4, example["B"] - example["A"], "{:.0f}"),
    ]
    for row in data["rows"]:
        ratio = row["permutations"] / row["zigzag"]
        words = f"{ratio:.3f} times the zig-zag's energy of links"
        compared.append(
            Statement(f"{row['network']}: the chosen permutation lowers the cost", words, ratio < 1)
        )
    left = [row["matching"] / row["permutations"] for row in data["rows"]]
    return Verdict(
        compared,
        differs="Where few layers run in one round there is little to permute; no measurement here shows "
        "more.",
        needed="The network behind the paper's picture would be needed.",
        best="The assignment of least bytes times hops, solved exactly round by round, leads to "
        f"{between(left)} times the energy of links of the best permutation of layers: "
        "the "
        "least rounds one by one are not always the least plan.",
    )


def draw(data: Data) -> Figure:
    """Energy of links by network and placement."""
    figure, axes = canvas(1, 2.6)
    series = {name: [row[name] / 1e9 for row in data["rows"]] for name in MAPPINGS}
    names = {
        "zigzag": "zig-zag",
        "permutations": "permutations (equation 2)",
        "matching": "least of each round",
    }
    grouped_bars(
        axes[0], [row["network"] for row in data["rows"]], {names[name]: own for name, own in series.items()}
    )
    axes[0].set_ylabel("energy of links [mJ]")
    legend(axes[0])
    return figure


FIGURE = PaperFigure(
    title="Transfer cost of placements",
    claim="In the example one order of layers needs 2 hops and another 4 more.",
    sizes={
        "smoke": {"networks": ("mlp",), "seconds": 0.3},
        "short": {"networks": ("resnet50", "efficientnet-b0"), "seconds": 4},
        "full": {"networks": ("vgg19", "resnet50", "inception-v3", "efficientnet-b0"), "seconds": 20},
    },
    measure=measure,
    judge=judge,
    draw=draw,
)
