"""Accelergy's energy reference table (ERT), from which Timeloop takes what an action costs."""

from __future__ import annotations

import re
from fractions import Fraction

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.source import Field

PEER = "timeloop"
TOPS: tuple[str, ...] = ("ERT",)

_INSTANCES = re.compile(r"\[[^\]]*\]")


def recognises(data: object) -> bool:
    """Whether a file has an energy reference table."""
    return isinstance(data, dict) and "ERT" in data


def read(top: Field, bundle: Bundle) -> None:
    """Keep the energy of every component's actions; of several entries of one action, the largest."""
    for table in top.at("ERT").at("tables").entries():
        path = _INSTANCES.sub("", table.at("name").text("a component's name"))
        actions: dict[str, Fraction] = bundle.action_energies.setdefault(path.rpartition(".")[2], {})
        for entry in table.at("actions").entries():
            name = entry.at("name").text("an action's name")
            energy = entry.at("energy").number("an energy in pJ")
            if actions.setdefault(name, energy) != energy:
                actions[name] = max(actions[name], energy)
                entry.lose(bundle.ledger, Effect.COST, f"has several energies for {name}: the largest counts")
