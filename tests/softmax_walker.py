"""A softmax in parts by its elements: which of a row were seen, and which sums of its reader have begun.

Nothing is shared with the formulation but the group.  A row is known by its maximum and its sum from the turn
that sees its first element to the one that sees its last.  Sums that have begun with a row are multiplied in
every later turn that adds to them.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.workloads.mapping.operator import Axis, Operator

Spans = dict[str, tuple[int, int]]
Element = tuple[int, ...]


def rows_along(group: FusedGroup, reading: Reading) -> tuple[str, ...]:
    """Dimensions of the reader that run along rows of what it reads."""
    rows = set(reading.rows)
    rows |= {i for i, place in enumerate(reading.axes) if (reading.producer, place) in group.rows}
    axes = dict(group.layers)[reading.reader].tensor(reading.operand).axes
    return tuple(term.dim for row in sorted(rows) for term in axes[row].terms)


class Rows:
    """The rows of one operand while its reader's turns run.

    Parameters
    ----------
    operator : the reader
    operand, along : its tensor, and its dimensions along rows
    """

    def __init__(self, operator: Operator, operand: str, along: tuple[str, ...]) -> None:
        self.operator, self.along = operator, along
        axes = operator.tensor(operand).axes
        self.across = [axis for axis in axes if not {term.dim for term in axis.terms} & set(along)]
        whole = {dim: (0, bound) for dim, bound in operator.bounds.items()}
        self.length = len(self.parts(whole))
        self.seen: dict[Element, set[Element]] = {}
        self.sums: dict[Element, set[Element]] = defaultdict(set)
        self.read = self.written = self.scaled = self.most = 0

    def parts(self, spans: Spans) -> set[Element]:
        """Elements along each row that a turn sees."""
        return set(product(*(range(*spans[dim]) for dim in self.along)))

    def turn(self, spans: Spans) -> None:
        """One turn of the reader."""
        outer = [dim for dim in spans if dim not in self.along]
        begun: dict[Element, set[Element]] = defaultdict(set)
        for point in product(*(range(*spans[dim]) for dim in outer)):
            at = dict(zip(outer, point, strict=True))
            begun[place(self.across, at)].add(place(self.operator.output.axes, at))
        for row, sums in begun.items():
            self.read += 2 * (row in self.seen)
            self.written += 2
            self.scaled += len(sums & self.sums[row])
            self.sums[row] |= sums
            self.seen.setdefault(row, set()).update(self.parts(spans))
        self.most = max(self.most, 2 * len(self.seen))
        for row in [row for row, seen in self.seen.items() if len(seen) == self.length]:
            del self.seen[row], self.sums[row]


def place(axes: tuple[Axis, ...] | list[Axis], at: dict[str, int]) -> Element:
    """The element that one iteration touches."""
    return tuple(sum(term.stride * at[term.dim] for term in axis.terms) for axis in axes)
