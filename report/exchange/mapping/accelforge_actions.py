"""AccelForge's actions: what reading and writing cost, and how fast they go.

Energies are in joules and rates in actions per second; an action moves ``bits_per_action`` bits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from tilewright.report.exchange.bundle import Bundle, energy_of
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.element_widths import Widths, rate
from tilewright.report.exchange.source import Field

PICO = 10**12
"""pJ of a joule."""
_LATENCIES = {
    "max(a.n_calls/a.throughputforainactions)": True,
    "sum(a.n_calls/a.throughputforainactions)": False,
}


def action_of(node: Field, name: str) -> Field:
    """A node's action of a name; an empty field where there is none."""
    for entry in node.at("actions").entries():
        if entry.at("name").value == name:
            return entry
    return Field(node.where, None, (*node.location, "actions"), node.document)


def energies(name: str, node: Field, bits: int, bundle: Bundle) -> tuple[Fraction, Fraction]:
    """pJ per element of so many bits read and written: the energies of actions over their bits.

    Parameters
    ----------
    name : of the memory; the user's word on it goes first
    node : the memory in its file
    bits : of an element
    bundle : collects what is read, settings and losses
    """
    given = bundle.settings.energies.get(name)
    if given is not None:
        return given
    if node.at("component_class").value == "Dummy" and not node.at("actions"):
        return Fraction(0), Fraction(0)
    converted = []
    for key in ("read", "write"):
        action = action_of(node, key)
        joules = action.at("energy")
        if not joules:
            tell_energy(node, bundle)
            return Fraction(0), Fraction(0)
        per_bit = joules.number("joules") / _bits(action, node)
        converted.append(energy_of(per_bit * bits * PICO, joules, bundle.ledger))
    return converted[0], converted[1]


def _bits(action: Field, node: Field) -> Fraction:
    place = action.at("bits_per_action") or node.at("bits_per_action")
    bits = place.number("bits per action") if place else Fraction(1)
    if bits == 0:
        raise place.error("expected bits per action above 0")
    return bits


def tell_energy(node: Field, bundle: Bundle) -> None:
    """Note that a node's energy is not stated."""
    message = "this file lacks its energy, which AccelForge's component models have: 0 pJ (--energy sets it)"
    node.lose(bundle.ledger, Effect.COST, message)


def rates(node: Field, widths: Widths, clock_hz: Fraction, bundle: Bundle) -> dict[str, str]:
    """Bandwidths by port; reads and writes have one each where the latency says so, else they take turns.

    Parameters
    ----------
    node : the memory in its file
    widths : bits of an element of each role
    clock_hz : cycles per second
    bundle : collects what is read, settings and losses
    """
    given: dict[str, str] = {}
    for key in ("read", "write"):
        action = action_of(node, key)
        place = action.at("throughput")
        if not place or place.infinite:
            continue
        bits = place.number("actions per second") * _bits(action, node) / clock_hz
        if bits == 0:
            raise place.error("expected actions per second above 0")
        given[key] = rate(bits, widths, partial(_tell_rounded, place, bundle))
    latency = node.at("total_latency")
    written = "".join(str(latency.value or "").split())
    separate = _LATENCIES.get(written, None if latency else False)
    if separate is None:
        latency.lose(bundle.ledger, Effect.COST, "every port takes its own accesses over its own throughput")
    elif not separate and len(given) == 2:
        if given["read"] == given["write"]:
            return {"shared": given["read"]}
        message = "reads and writes take turns there, at rates of their own; here each has a port"
        node.lose(bundle.ledger, Effect.COST, message)
    return given


def _tell_rounded(place: Field, bundle: Bundle) -> None:
    place.lose(bundle.ledger, Effect.COST, "is rounded to six decimals per cycle")
