"""Plots of a search as plain numbers: step curves, and how value and bound of a run come together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

UNITS = {
    "energy": (1e-12, "energy [J]"),
    "cycles": (1.0, "cycles"),
    "edp": (1e-12, "energy-delay product [J·cycle]"),
    "ed2p": (1e-12, "energy-delay² product [J·cycle²]"),
}
"""Factor and axis label of the objectives with a name."""


def unit(objective: str) -> tuple[float, str]:
    """Factor and axis label of an objective; one without a name of its own is shown as it is."""
    return UNITS.get(objective, (1.0, objective))


@dataclass(frozen=True, slots=True)
class Curve:
    """A step curve: from every x on, the y beside it."""

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Convergence:
    """How value and bound of one run came together; values as people read the objective."""

    name: str
    value: Curve
    bound: Curve
    seconds: float


def convergence(
    name: str, points: Iterable[tuple[float, float | None, float | None]], seconds: float
) -> Convergence:
    """The course of one run.

    Parameters
    ----------
    points : seconds, value and bound, where both are known, in the order of time
    seconds : how long the run took
    """
    parts: list[tuple[list[float], list[float]]] = [([], []), ([], [])]
    for when, *pair in points:
        for (xs, ys), shown in zip(parts, pair, strict=True):
            if shown is not None and (not ys or ys[-1] != shown):
                xs.append(when)
                ys.append(shown)
    value, bound = (Curve(name, tuple(xs), tuple(ys)) for xs, ys in parts)
    return Convergence(name, value, bound, seconds)
