"""The space of trees: depth, energy and delay of random ones and along annealing; DRAM, hops and DRAM's "
"share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

from studies.papers.figure import Compared, Data, PaperFigure, Row, Span, Statement, Verdict
from studies.papers.set.trees import NAMES, cell
from studies.papers.study import Study
from studies.set_cells import form_of
from tilewright.formulation.scheduling.tiled.kapla.chain import loads_of
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling, anneal, first_tree
from tilewright.heuristics.scheduling.tiled.set.operators import KINDS, divisors
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Layers of a random tree's segments at most."""
TRIES = 6
"""Draws of a segment, of which the last one gives way to a single layer."""
Dot = list[float]
"""Mean depth of leaves, pJ, cycles, bytes of DRAM, bytes times hops, share of DRAM's time."""


def depths(tree: Node, above: int = 0) -> list[int]:
    """Of all leaves; the root has depth 0."""
    if isinstance(tree, Leaf):
        return [above]
    return [depth for child in tree.children for depth in depths(child, above + 1)]


def dot(form: ClosedForm, tree: Node) -> Dot | None:
    """What the pictures show of a tree; ``None`` where it does not fit."""
    cost = form.attempt(tree)
    if isinstance(cost, Unfit):
        return None
    share = cost.dram / form.machine.dram_rate / cost.cycles
    return [fmean(depths(tree)), cost.energy, float(cost.cycles), float(cost.dram), float(cost.hops), share]


def random_cut(order: Sequence[int], batch: int, random: Random, deep: float) -> Node:
    """A tree over consecutive layers, cut at random from the top down.

    Parameters
    ----------
    order : its layers
    batch : samples of one run
    random : of kinds, subbatches and places of cuts
    deep : probability that a cut has fewer children than layers, so that cuts lie below it
    """
    if len(order) == 1:
        return Leaf(order[0], batch)
    inside = range(1, len(order))
    places = (
        sorted(random.sample(inside, random.randint(1, len(inside)))) if random.random() < deep else inside
    )
    groups = random.choice(divisors(batch))
    children = tuple(
        random_cut(order[begin:end], batch // groups, random, deep)
        for begin, end in pairwise((0, *places, len(order)))
    )
    return Cut(random.choice(KINDS), batch, groups, children)


def random_tree(form: ClosedForm, random: Random) -> Cut:
    """Random segments, one after the other; those that do not fit are drawn anew.

    The longest segment and the probability of deep cuts are drawn first, so that trees of all depths appear.
    """
    longest, deep, loads = random.choice(LONGEST), random.random(), loads_of(form, 1)
    segments: list[Node] = []
    begin = 0
    while begin < len(form.network):
        for _ in range(TRIES):
            end = min(len(form.network), begin + random.randint(1, longest))
            segment = random_cut(range(begin, end), form.batch, random, deep)
            if not isinstance(form.segment(segment, loads), Unfit):
                break
        else:
            segment, end = Leaf(begin, form.batch), begin + 1
        segments.append(segment)
        begin = end
    return Cut("T", form.batch, 1, tuple(segments))


def random_trees(network: str, platform: str, batch: int, count: int, seed: int) -> list[Dot]:
    """Dots of random trees."""
    form = form_of(cell((platform, network, batch), "sa", seed, 1.0))
    random = Random(seed)
    dots: list[Dot] = []
    while len(dots) < count:
        drawn = dot(form, random_tree(form, random))
        if drawn is not None:
            dots.append(drawn)
    return dots


def path(network: str, platform: str, batch: int, steps: int, seed: int) -> list[Dot]:
    """Every better tree of an annealing."""
    form = form_of(cell((platform, network, batch), "sa", seed, 1.0))
    begun = first_tree(form)
    assert begun is not None
    trees: list[Node] = [begun[0]]
    anneal(
        form, begun, Cooling(steps=steps), Random(seed), lambda: False, lambda tree, value: trees.append(tree)
    )
    return [position for tree in trees if (position := dot(form, tree)) is not None]


def measure(study: Study) -> Data:
    """A row per network: random dots and those of annealing's path."""
    rows: list[Row] = []
    for network in study["networks"]:
        place = {"network": network, "platform": study["platform"], "batch": study["batch"]}
        dots = study.cell("random trees", random_trees, **place, count=study["count"], seed=1)
        along = study.cell("path of annealing", path, **place, steps=study["steps"], seed=1)
        rows.append({"network": NAMES.get(network, network), "random": dots, "path": along})
    return {"rows": rows}


def correlation(xs: list[float], ys: list[float]) -> float:
    """Of two lists; 0 where one does not vary."""
    x, y = fmean(xs), fmean(ys)
    pairs = [(a - x, b - y) for a, b in zip(xs, ys, strict=True)]
    spread = (sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs)) ** 0.5
    return sum(a * b for a, b in pairs) / spread if spread else 0.0


def judge(data: Data) -> Verdict:
    """Deeper trees cost less energy; DRAM bounds delay; annealing ends in deeper trees of less delay."""
    compared: list[Compared] = []
    for row in data["rows"]:
        name, dots, along = row["network"], row["random"], row["path"]
        tie = correlation([own[0] for own in dots], [own[1] for own in dots])
        compared.append(
            Statement(f"{name}: deeper trees cost less energy", f"correlation {tie:.2f}", tie < -0.1)
        )
        least = [
            min((own[2] for own in dots if (own[0] > 1.5) == deep), default=float("nan"))
            for deep in (False, True)
        ]
        compared.append(
            Statement(
                f"{name}: deeper trees have the smaller least delay",
                f"{least[1] / least[0]:.2f} times that of trees of depth 1.5 or less",
                least[1] < least[0],
            )
        )
        compared.append(
            Statement(
                f"{name}: no dot is below the DRAM bound",
                f"share {max(own[5] for own in dots):.3f} at most",
                max(own[5] for own in dots) <= 1,
            )
        )
        deep = f"depth {along[0][0]:.1f} to {along[-1][0]:.1f}, delay {along[-1][2] / along[0][2]:.2f} times"
        compared.append(
            Statement(
                f"{name}: annealing ends in a deeper tree of less delay",
                deep,
                along[-1][0] > along[0][0] and along[-1][2] < along[0][2],
            )
        )
        near = sorted(own[5] for own in dots)[-max(1, len(dots) // 20) :]
        compared.append(
            Span(f"{name}: DRAM's share of the delay near the bound", 0.80, near[0], "{:.2f}", 0.98, near[-1])
        )
    return Verdict(
        compared,
        differs="How the paper draws random trees is not in the text; here segments of random lengths are "
        "cut at random from the top down, and those that do not fit are drawn anew.",
        needed="The paper's distribution of trees would be needed.",
        best="That no dot lies below the DRAM bound is a theorem of the closed form, tested on every tree "
        "drawn.",
    )


def draw(data: Data) -> Figure:
    """Per network: energy over delay coloured by depth, with annealing's path; hops over DRAM; DRAM's "
    "share."""
    figure, axes = canvas(3, 0.7 + 2.5 * len(data["rows"]), rows=len(data["rows"]))
    for line, row in enumerate(data["rows"]):
        dots, along = row["random"], row["path"]
        first, second, third = axes[3 * line : 3 * line + 3]
        shades = [own[0] for own in dots]
        delay, energy = [own[2] / 1e6 for own in dots], [own[1] / 1e9 for own in dots]
        drawn = first.scatter(delay, energy, c=shades, s=6, cmap="viridis")
        first.plot(
            [own[2] / 1e6 for own in along],
            [own[1] / 1e9 for own in along],
            "-",
            color="#D55E00",
            linewidth=1.0,
            label="annealing",
        )
        figure.colorbar(drawn, ax=first, label="mean depth")
        first.set_ylabel(f"{row['network']}\nenergy [mJ]")
        first.legend()
        second.scatter(
            [own[3] / 1e6 for own in dots], [own[4] / 1e9 for own in dots], c=shades, s=6, cmap="viridis"
        )
        second.set_ylabel("bytes x hops [GB]")
        third.scatter(delay, [own[5] for own in dots], c=shades, s=6, cmap="viridis")
        third.set_ylabel("DRAM's share")
        third.set_ylim(0, 1.02)
        first.set_xlabel("delay [Mcycles]")
        second.set_xlabel("DRAM [MB]")
        third.set_xlabel("delay [Mcycles]")
    return figure


FIGURE = PaperFigure(
    title="The space of trees",
    claim="Deeper trees cost less energy; DRAM bounds the delay; annealing finds deep trees of low delay.",
    sizes={
        "smoke": {"networks": ("darknet",), "platform": "edge", "batch": 1, "count": 15, "steps": 3},
        "short": {"networks": ("resnet",), "platform": "cloud", "batch": 8, "count": 200, "steps": 20},
        "full": {
            "networks": ("resnet", "trans"),
            "platform": "cloud",
            "batch": 8,
            "count": 5000,
            "steps": 100,
        },
    },
    measure=measure,
    judge=judge,
    draw=draw,
)
