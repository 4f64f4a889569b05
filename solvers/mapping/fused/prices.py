"""A machine on which energy is what is to be minimised: pJ and a price for every cycle, or cycles alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tilewright.hardware.mapping.engine import Engine, Fanout, MemoryLevel

PRICE = "price of a cycle"
"""The name under which the price of a cycle stands beside what components leak; no level can have it."""


def at_price(engine: Engine, price: Fraction | None) -> Engine:
    """The machine with a price for every cycle.

    Parameters
    ----------
    engine : the machine; its static power stays
    price : pJ per cycle; ``None`` for cycles alone, at 1 pJ each
    """
    if price is None:
        free = Fraction(0)
        levels = tuple(_free(level) for level in engine.levels)
        return replace(engine, mac_energy=free, levels=levels, leakage={PRICE: Fraction(1)})
    return replace(engine, leakage={**engine.leakage, PRICE: price}) if price else engine


def _free(level: MemoryLevel) -> MemoryLevel:
    nothing = Fraction(0)
    return replace(
        level,
        read_energy=nothing,
        write_energy=nothing,
        read_energies={},
        write_energies={},
        fanout=None if level.fanout is None else _free_network(level.fanout),
    )


def _free_network(fanout: Fanout) -> Fanout:
    return replace(fanout, energy=Fraction(0), hop_energy=Fraction(0))
