"""Methods on tiled machines against each other and against two bounds, as a table.

    python -m studies.tiled resnet50 vgg19 --seconds 60 --store tiled.sqlite

For every network and link width, each method's cycles, the least that its own atoms allow, and the least over
all sizes of atoms.  Cells that the store lacks are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from studies.answers import AnswerStore
from studies.command import run_study, study_parser
from studies.tiled_cells import WORK, Cell, Found

PAPER = "atomic[atoms=printed,order=rules,mapping=permutations,buffering=occupation,refine=off]"
"""The stages as Atomic Dataflow prints them."""

METHODS = ("ls", "cnn-p", "il-pipe", "rammer", PAPER, "atomic[refine=off]", "atomic")
LINKS = (8, 16, 32)
_NAMES = {PAPER: "atomic, as printed", "atomic[refine=off]": "atomic, without climbing"}

HEAD = (
    "| network | batch | B/cycle | method | atoms | cycles | gap, its atoms | gap, all sizes | s |\n"
    "|---|---:|---:|---|---:|---:|---:|---:|---:|"
)


def text(cell: Cell, link: int, plan: Found) -> str:
    """A line of the table; the last column is the second of the best plan."""
    cells = [cell.network, str(cell.batch), str(link), _NAMES.get(cell.method, cell.method)]
    if plan.is_plan:
        gaps = (f"{100 * (1 - low / plan.cycles):.1f} %" for low in (plan.own_bound, plan.bound))
        cells += [f"{plan.atoms:,}", f"{plan.cycles:,}", *gaps, f"{plan.seconds:.1f}"]
    else:
        cells += ["-", f"{plan.status} {plan.message}", "-", "-", "-"]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for and the store lacks, and print the table."""
    parser = study_parser(__doc__ or "", "tiled.sqlite", 60.0)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--links", type=int, nargs="+", default=list(LINKS), help="bytes per cycle")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    asked = parser.parse_args(arguments)
    links = {
        Cell(network, f"atomic-8x8[link={link}]", method, asked.batch, "makespan", asked.seconds): link
        for network in asked.networks
        for link in asked.links
        for method in asked.methods
    }

    def show(store: AnswerStore[Cell, Found]) -> Iterator[str]:
        yield HEAD
        for cell, link in links.items():
            plan = store.get(cell)
            if plan is not None:
                yield text(cell, link, plan)

    return run_study(asked, WORK, list(links), show)


if __name__ == "__main__":
    raise SystemExit(main())
