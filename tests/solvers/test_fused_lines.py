"""Products of energy and cycles proven by lines, against plain minima over sets of points."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from tilewright.formulation.objective import Objective, parse_objective
from tilewright.solvers.mapping.fused.lines import Line, Point, least_key, next_price

OBJECTIVES = ["edp", "ed2p", "E^2*D", "E^0.5*D", "E*D^1.5"]


def random_points(rng: Random) -> list[Point]:
    """Many on few values, so that keys, sums and whole lines are often equal; or far apart."""
    if rng.random() < 0.5:
        return [(Fraction(rng.randint(1, 12)), rng.randint(1, 12)) for _ in range(rng.randint(1, 30))]
    return [
        (Fraction(int(10 ** rng.uniform(0, 6)), rng.choice([1, 3])), int(10 ** rng.uniform(0, 4)))
        for _ in range(rng.randint(1, 30))
    ]


def line_of(points: list[Point], price: Fraction) -> Line:
    """The least of all points at a price."""
    least, point = min((energy + price * cycles, (energy, cycles)) for energy, cycles in points)
    return Line(price, least, point)


def proven(
    rng: Random, points: list[Point], objective: Objective, slack: Fraction
) -> tuple[Fraction, Fraction, int]:
    """Best key, bound and number of lines, from lines that lie too low by some slack."""
    fewest = Fraction(min(cycles for _, cycles in points)) * Fraction(rng.choice([1, 3, 4]), 4)
    lines = [Line(Fraction(0), min(energy for energy, _ in points) * Fraction(rng.choice([1, 3, 4]), 4))]
    best: Fraction | None = None
    price: Fraction | None = Fraction(rng.randint(1, 100), rng.choice([1, 10]))
    while price is not None and len(lines) < 60:
        line = line_of(points, price)
        lines.append(Line(price, line.least * (1 - slack * rng.choice([0, 1])), line.point))
        known = [objective.key(*line.point) for line in lines if line.point is not None]
        best = min(known)
        price = next_price(objective, lines, fewest, best * (1 - slack) ** sum(objective.key_powers))
    assert best is not None
    return best, least_key(objective, lines, fewest), len(lines)


def test_lines_prove_the_least_product() -> None:
    """The best point is the least of all, and the bound is its key."""
    most = 0
    for number in range(400):
        rng = Random(f"lines-{number}")
        points, objective = random_points(rng), parse_objective(rng.choice(OBJECTIVES))
        best, bound, lines = proven(rng, points, objective, Fraction(0))
        least = min(objective.key(*point) for point in points)
        assert best == least, number
        assert bound >= least, number
        most = max(most, lines)
    print(f"{most} lines at most")
    assert most < 30


def test_lines_that_lie_too_low_prove_less() -> None:
    """Bounds of lines with a gap lie below the key of every point, and within the gap that is asked for."""
    for number in range(200):
        rng = Random(f"loose-{number}")
        points, objective = random_points(rng), parse_objective(rng.choice(OBJECTIVES))
        slack = Fraction(1, rng.choice([10, 50]))
        best, bound, _ = proven(rng, points, objective, slack)
        assert all(bound <= objective.key(*point) for point in points), number
        assert bound >= best * (1 - slack) ** sum(objective.key_powers)
