"""Phases of a language model in one line."""

from __future__ import annotations

from tilewright.report.records.mapping.phases import PhasesRecord


def phases_text(phases: PhasesRecord) -> str:
    """How often each phase runs, and how many of the steps were searched."""
    lengths = phases.lengths
    if not lengths:
        return phases.text
    steps = lengths[-1] - lengths[0] + 1
    cached = (
        f"{lengths[0]:,} to {lengths[-1]:,} cached tokens" if steps > 1 else f"{lengths[0]:,} cached tokens"
    )
    searched = "each searched" if steps == len(lengths) else f"{len(lengths)} searched, the others bounded"
    return f"{phases.text}: {steps} {'step' if steps == 1 else 'steps'}, {cached}, {searched}"
