"""How long the best of all trees takes to be proven, over parts of the released program's networks.

    python -m studies.set_proofs goog:5-12 resnet:2-9 --seconds 60

A part is a network and its first and last layer by number; the figures are those of the released program's
tile on 4 x 4 tiles with the paper's rules (EDP).  The time holds a search for trees, a quarter of it at most,
and the proof; where that runs out of time, the gap is that to a bound over all trees.
"""

from __future__ import annotations

from collections.abc import Sequence

from studies.answers import AnswerStore
from studies.command import run_study, study_parser
from studies.set_cells import TREES, TreeCell, TreeFound

HEAD = "| network | layers | best found | CPU s | |\n|---|---|---:|---:|---|"


def cell(part: str, batch: int, seconds: float) -> TreeCell:
    """The proof of one part; raises ``ValueError`` for a text that is none."""
    name, _, span = part.partition(":")
    first, _, last = span.partition("-")
    layers = tuple(range(int(first), int(last) + 1))
    return TreeCell(
        network=name,
        part=layers,
        system="set-edge-4x4",
        figures="program",
        rules="paper",
        batch=batch,
        energy_power=1,
        delay_power=1,
        method="all",
        seed=1,
        seconds=seconds,
    )


def row(cell: TreeCell, store: AnswerStore[TreeCell, TreeFound]) -> str:
    """A row of the table."""
    run, span = store.get(cell), f"{cell.network} | {cell.part[0]} to {cell.part[-1]} ({len(cell.part)})"
    if run is None or run.status == "error":
        return f"| {span} | - | | {'not run' if run is None else run.message} |"
    open_gap = f", gap {1 - run.bound / run.value:.1%}" if run.bound else ""
    return f"| {span} | {run.value:.4g} | {run.seconds:.1f} | {run.status}{open_gap} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, then print the table."""
    parser = study_parser(__doc__, "proofs.sqlite", 60.0)
    parser.add_argument("parts", nargs="+", metavar="NETWORK:FIRST-LAST")
    parser.add_argument("--batch", type=int, default=1)
    asked = parser.parse_args(arguments)
    cells = [cell(part, asked.batch, asked.seconds) for part in asked.parts]
    return run_study(
        asked, TREES, cells, lambda store: [HEAD, *(row(tree_cell, store) for tree_cell in cells)]
    )


if __name__ == "__main__":
    raise SystemExit(main())
