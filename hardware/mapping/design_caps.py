"""Caps on designs of a space: ``area<=10mm2``, ``capacity<=1MB``, ``pes<=256``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tilewright.foundation.errors import InputError
from tilewright.foundation.units import exact
from tilewright.hardware.arithmetic import parse_formula

_CAP = re.compile(r"\s*(?P<quantity>area|capacity|pes)\s*<=(?P<most>.*)", re.DOTALL)
_UNIT = re.compile(r"\s*mm2\s*$")


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that a design may have of a quantity: mm2, bytes or PEs.

    Parameters
    ----------
    text : as the user wrote it
    quantity : a name that `tilewright.hardware.mapping.design_cost.design_quantities` knows
    """

    text: str
    quantity: str
    most: Fraction

    def broken(self, quantities: Mapping[str, Fraction]) -> str:
        """Why a design breaks it; empty where it does not."""
        amount = quantities.get(self.quantity)
        if amount is None:
            return f"{self.text}: the machine's file states no {self.quantity}"
        return "" if amount <= self.most else f"{self.text}: {self.quantity} is {exact(amount)}"


def parse_caps(texts: Iterable[str]) -> tuple[tuple[Cap, ...], tuple[str, ...]]:
    """The caps on designs among some constraints, and the other constraints.

    Raises
    ------
    InputError : for a cap whose number cannot be read
    """
    caps: list[Cap] = []
    others: list[str] = []
    for text in texts:
        match = _CAP.fullmatch(text)
        if match is None:
            others.append(text)
            continue
        number = _UNIT.sub("", match["most"]) if match["quantity"] == "area" else match["most"]
        try:
            most = parse_formula(number, ()).value({})
        except ValueError:
            expected = f"expected a number such as {match['quantity']}<={_EXAMPLES[match['quantity']]}"
            raise InputError("--constraint", text, expected) from None
        caps.append(Cap(text.strip(), match["quantity"], most))
    return tuple(caps), tuple(others)


_EXAMPLES = {"area": "10mm2", "capacity": "256kB", "pes": "256"}
