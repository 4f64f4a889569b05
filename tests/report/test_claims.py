"""What a search claims is written by one function, in every document."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.report.records.claims import claim, figures
from tilewright.solvers.running import no_result


def test_figures_are_shown_and_exact() -> None:
    """Integers where they are integral, floats elsewhere or where asked for; fractions as text beside."""
    key, bound = Fraction(4), Fraction(7, 2)
    shown = parse_objective("energy").value
    assert figures(key, bound, shown) == {"value": 4, "value_exact": "4", "bound": 3.5, "bound_exact": "7/2"}
    assert isinstance(figures(key, None, float)["value"], float)
    assert figures(None, None, shown) == dict.fromkeys(("value", "value_exact", "bound", "bound_exact"))


def test_a_claim_has_status_and_gap() -> None:
    """The gap is that of the values shown, which are roots of keys for some objectives."""
    objective = parse_objective("E^0.5*D^0.5")
    result = no_result(
        "branch", "1", Limits(), "", status=Status.FEASIBLE, key=Fraction(100), bound=Fraction(81)
    )
    reported = claim(objective, result)
    assert (reported["status"], reported["value"], reported["bound"]) == ("feasible", 10, 9)
    assert reported["gap"] is not None
    assert abs(reported["gap"] - 0.1) < 1e-12
