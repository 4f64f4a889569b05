"""Accelergy's reference tables: of energies (ERT), from which Timeloop takes what actions cost, and of areas.

A summary of the ERT has averages of each action; it counts where the table itself is not given.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.source import Field

PEER = "timeloop"
TOPS: tuple[str, ...] = ("ERT", "ERT_summary", "ART", "ART_summary")

_INSTANCES = re.compile(r"\[[^\]]*\]")


def recognises(data: object) -> bool:
    """Whether a file has a reference table."""
    return isinstance(data, dict) and any(top in data for top in TOPS)


def read(top: Field, bundle: Bundle) -> None:
    """Keep the energy of every component's actions; of several entries of one action, the largest."""
    for areas in ("ART", "ART_summary"):
        if top.at(areas):
            top.at(areas).lose(bundle.ledger, Effect.NONE, "areas change no mapping")
    summary = top.at("ERT_summary").at("table_summary")
    for table in [] if top.at("ERT") else summary.entries():
        path = _INSTANCES.sub("", table.at("name").text("a component's name"))
        for entry in table.at("actions").entries():
            averages = bundle.action_energies.setdefault(path.rpartition(".")[2], {})
            averages.setdefault(entry.at("name").text("an action's name"), _average(entry))
    for table in top.at("ERT").at("tables").entries():
        path = _INSTANCES.sub("", table.at("name").text("a component's name"))
        actions: dict[str, Fraction] = bundle.action_energies.setdefault(path.rpartition(".")[2], {})
        for entry in table.at("actions").entries():
            name = entry.at("name").text("an action's name")
            energy = entry.at("energy").number("an energy in pJ")
            if actions.setdefault(name, energy) != energy:
                actions[name] = max(actions[name], energy)
                entry.lose(bundle.ledger, Effect.COST, f"has several energies for {name}: the largest counts")


def _average(entry: Field) -> Fraction:
    """The energy of an action in a summary."""
    for key in ("average_energy", "energy", "max_energy"):
        if entry.at(key):
            return entry.at(key).number("an energy in pJ")
    raise entry.error("expected average_energy in pJ")
