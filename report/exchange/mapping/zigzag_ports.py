"""Ports of ZigZag's memories: who reads and writes through which, and how wide each is.

``tl`` reads for the level inside, ``fh`` fills from outside, ``fl`` takes what comes from inside; ``th``
reads what goes outwards, which is no access here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.machine_text import is_exact_rate, rate_text
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

_ALLOCATION = re.compile(r"(I1|I2|O)\s*,\s*(fh|tl|fl|th)")
_READS, _WRITES = ("tl",), ("fh", "fl")


@dataclass(frozen=True, slots=True)
class Ports:
    """What the ports of a memory come to.

    Parameters
    ----------
    rates : bandwidths by direction, as a machine file has them
    read_share, write_share : of an access, what one element takes
    """

    rates: dict[str, str]
    read_share: Fraction
    write_share: Fraction

    @classmethod
    def of(cls, memory: Field, roles: Collection[Role], width: int, bundle: Bundle) -> Ports:
        """The ports of a memory whose elements have so many bits."""
        uses: dict[str, list[tuple[Field, int]]] = {"read": [], "write": []}
        for port in memory.at("ports").entries():
            port.at("type").one_of(("read", "write", "read_write"))
            bits = port.at("bandwidth_max").whole("bits per cycle")
            ways = set()
            for one in port.at("allocation").entries():
                match = _ALLOCATION.fullmatch(one.text("such as I1, tl"))
                if match is None:
                    raise one.error("expected an operand and a direction, such as I1, tl")
                ways |= {"read"} if match[2] in _READS else {"write"} if match[2] in _WRITES else set()
            for way in sorted(ways):
                uses[way].append((port, bits))
            if len(ways) > 1:
                message = "reads and writes share one port: here each of the two has all of it"
                port.lose(bundle.ledger, Effect.COST, message)
            least = port.at("bandwidth_min").whole("bits per cycle") if port.at("bandwidth_min") else width
            if least > width:
                message = f"accesses are counted in {least} bits there, here by the element of {width}"
                port.at("bandwidth_min").lose(bundle.ledger, Effect.COST, message)
        rates = {way: _rate(way, ports, width, bundle) for way, ports in uses.items() if ports}
        shares = [Fraction(width, max((bits for _, bits in uses[way]), default=width)) for way in uses]
        return cls(rates, shares[0], shares[1])


def _rate(way: str, ports: list[tuple[Field, int]], width: int, bundle: Bundle) -> str:
    rate = Fraction(sum(bits for _, bits in ports), width)
    if len(ports) > 1:
        message = f"several ports {way}: here all tensors share their sum"
        ports[-1][0].lose(bundle.ledger, Effect.COST, message)
    if not is_exact_rate(rate):
        ports[-1][0].lose(bundle.ledger, Effect.COST, "the bandwidth is rounded to six decimals")
    return rate_text(rate)
