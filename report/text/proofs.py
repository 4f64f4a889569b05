"""Second opinions as text and as data."""

from __future__ import annotations

from typing import Any

from tilewright.solvers.second_opinion import Proof

STYLES = {"holds": "green", "fails": "bold red", "confirmed": "green", "refuted": "bold red"}
"""Of words and verdicts in tables; yellow for any other."""


def proof_data(proof: Proof) -> dict[str, Any]:
    """A proof as plain data."""
    return {
        "verdict": proof.verdict.value,
        "solver": proof.solver,
        "message": proof.text,
        "wall_s": round(proof.seconds, 4),
    }
