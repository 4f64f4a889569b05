"""Exponentials of sums of logarithms, bounded from below by lines.

A monomial's logarithm ``L`` is linear in the one-hot choice of rows, its value is ``exp(L)``.  The function
is convex, so a tangent lies below it; and because only finitely many values occur, the line through two
neighbours among them (the tangent's discrete counterpart) lies below all of them and is exact at both.
That line is the cut.  Rows with the factor 0 have no logarithm: they get a weight of their own that takes
a line down to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Floats

MOST = 20_000
SLACK = 1e-10  # relative; covers the rounding of coefficients


@dataclass(frozen=True, slots=True)
class Line:
    """``value >= slope * log + offset - sum(weight * zero)``, in units of the envelope's scale.

    Parameters
    ----------
    weights : per factor, what a row with the value 0 takes off
    """

    slope: float
    offset: float
    weights: tuple[float, ...]


class Envelope:
    """The lines below one monomial.

    Parameters
    ----------
    factors : the tables of the monomial
    cap : values above it do not matter
    """

    def __init__(self, factors: Sequence[Floats], cap: float) -> None:
        self.logs = [_logs(values) for values in factors]
        self.zeros = [values <= 0 for values in factors]
        top = float(np.prod([values.max() for values in factors]))
        self.scale = min(cap, top) or 1.0
        values = np.array([1.0])
        self._dense = True
        for factor in factors:
            distinct = np.unique(factor[factor > 0])
            values = np.unique(np.outer(values, distinct))
            values = values[np.append(True, np.diff(values) > 1e-12 * values[1:])]
            if len(values) > MOST:
                self._dense = False
                break
        if not self._dense:
            least = float(np.prod([factor[factor > 0].min() for factor in factors]))
            values = np.geomspace(least, max(top, least), MOST // 10)
        kept = max(2, int(np.searchsorted(values, self.scale * (1 + 1e-9), side="right")))
        self._values = values[:kept] / self.scale
        self._places = np.log(values[:kept])

    def initial(self, count: int) -> list[Line]:
        """Lines spread over the range, finer where the value is large."""
        pieces = len(self._places) - 1
        if pieces <= count:
            return [self._line(piece) for piece in range(max(pieces, 1))]
        even = np.searchsorted(self._values, np.linspace(0, self._values[-1], count))
        tenth = np.linspace(0, pieces - 1, count // 4)
        chosen = np.unique(np.clip(np.concatenate([even - 1, tenth]).astype(int), 0, pieces - 1))
        return [self._line(int(piece)) for piece in chosen]

    def at(self, log: float) -> Line:
        """The strongest line at a logarithm."""
        piece = int(np.searchsorted(self._places, log, side="right")) - 1
        return self._line(min(max(piece, 0), max(len(self._places) - 2, 0)))

    def _line(self, piece: int) -> Line:
        here = float(self._places[piece])
        if len(self._places) == 1:
            slope = float(self._values[0])
        elif self._dense:
            width = float(self._places[piece + 1]) - here
            slope = float(self._values[piece + 1] - self._values[piece]) / width
        else:
            slope = float(self._values[piece])
        offset = float(self._values[piece]) - slope * here
        offset -= SLACK * (1 + abs(offset) + slope)
        most = [float(logs.max()) for logs in self.logs]
        weights = []
        for factor, (logs, zeros) in enumerate(zip(self.logs, self.zeros, strict=True)):
            least = float(logs[zeros].max()) if zeros.any() else 0.0
            reach = slope * (sum(most) - most[factor] + least) + offset
            weights.append(max(0.0, reach))
        return Line(slope, offset, tuple(weights))


def _logs(values: Floats) -> Floats:
    """Logarithms; of zeros that of the least positive value."""
    least = float(values[values > 0].min())
    return np.log(np.where(values > 0, values, least))
