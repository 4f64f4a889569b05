"""Ports of ZigZag's memories: who reads and writes through which, and how wide each is.

``tl`` reads for the level inside, ``fh`` fills from outside, ``fl`` takes what comes from inside; ``th``
reads what goes outwards, which is no access here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.element_widths import Widths, rate
from tilewright.report.exchange.source import Field

_ALLOCATION = re.compile(r"(I1|I2|O)\s*,\s*(fh|tl|fl|th)")
_READS, _WRITES = ("tl",), ("fh", "fl")


@dataclass(frozen=True, slots=True)
class Ports:
    """What the ports of a memory come to.

    Parameters
    ----------
    rates : bandwidths by port, as a machine file has them
    read_bits, write_bits : bits of an access; ``None`` where there is no port for it
    """

    rates: dict[str, str]
    read_bits: int | None
    write_bits: int | None

    @classmethod
    def of(cls, memory: Field, widths: Widths, bundle: Bundle) -> Ports:
        """The ports of a memory whose elements have so many bits."""
        uses: dict[str, list[tuple[Field, int]]] = {"read": [], "write": []}
        shared: list[Field] = []
        ports = memory.at("ports").entries()
        for port in ports:
            port.at("type").one_of(("read", "write", "read_write"))
            bits = port.at("bandwidth_max").whole("bits per cycle")
            ways = set()
            for entry in port.at("allocation").entries():
                match = _ALLOCATION.fullmatch(entry.text("such as I1, tl"))
                if match is None:
                    raise entry.error("expected an operand and a direction, such as I1, tl")
                ways |= {"read"} if match[2] in _READS else {"write"} if match[2] in _WRITES else set()
            for way in sorted(ways):
                uses[way].append((port, bits))
            if len(ways) > 1:
                shared.append(port)
            _tell_least(port, widths, bundle)
        most = {way: max((bits for _, bits in entries), default=None) for way, entries in uses.items()}
        if shared and uses["read"] == uses["write"]:
            uses = {"shared": uses["read"]}
        else:
            message = "reads and writes share this port and not another: here each of the two has all of it"
            for port in shared:
                port.lose(bundle.ledger, Effect.COST, message)
        rates = {way: _rate(way, entries, widths, bundle) for way, entries in uses.items() if entries}
        return cls(rates, most["read"], most["write"])


def _tell_least(port: Field, widths: Widths, bundle: Bundle) -> None:
    """Note an access that takes more bits than an element has."""
    place = port.at("bandwidth_min")
    least, width = place.whole("bits per cycle") if place else 0, min(widths.values())
    if least > width:
        message = f"accesses are counted in {least} bits there, here by the element of {width}"
        place.lose(bundle.ledger, Effect.COST, message)


def _rate(way: str, ports: list[tuple[Field, int]], widths: Widths, bundle: Bundle) -> str:
    last = ports[-1][0]
    if len(ports) > 1:
        doing = f"{way}" if way != "shared" else "read and write"
        last.lose(bundle.ledger, Effect.COST, f"several ports {doing}: here all tensors share their sum")

    def tell_rounded() -> None:
        last.lose(bundle.ledger, Effect.COST, "the bandwidth is rounded to six decimals")

    return rate(Fraction(sum(bits for _, bits in ports)), widths, tell_rounded)
