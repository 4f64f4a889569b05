"""Attributes of Timeloop's components: sizes, bandwidths, and what Accelergy makes of them.

A memory of ``depth`` words of ``width`` bits holds ``depth * width / datawidth`` elements; an action moves
one word.  Bandwidths are in elements per cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tilewright.report.exchange.bundle import Bundle, energy_of
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.chain import reported_limit
from tilewright.report.exchange.mapping.machine_text import is_exact_rate, rate_text
from tilewright.report.exchange.source import Field

_SIZES: tuple[str, ...] = ("width", "depth", "entries", "sizeKB", "datawidth", "word-bits", "word_bits")
_SIZES += ("block_size", "block-size", "cluster_size")
_RATES = ("read_bandwidth", "write_bandwidth", "shared_bandwidth")
_OTHER = {
    "network_fill_latency": (Effect.COST, "networks take no time of their own"),
    "network_drain_latency": (Effect.COST, "networks take no time of their own"),
    "per_dataspace_bandwidth_consumption_scale": (Effect.COST, "every tensor takes the same share of a port"),
    "metadata_datawidth": (Effect.COST, "metadata of compressed tensors is not modelled"),
    "metadata_storage_width": (Effect.COST, "metadata of compressed tensors is not modelled"),
    "metadata_storage_depth": (Effect.COST, "metadata of compressed tensors is not modelled"),
    "metadata_block_size": (Effect.COST, "metadata of compressed tensors is not modelled"),
    "decompression_supported": (Effect.COST, "tensors are dense"),
    "compression_supported": (Effect.COST, "tensors are dense"),
    "concordant_compressed_tile_traversal": (Effect.COST, "tensors are dense"),
    "tile_partition_supported": (Effect.COST, "tensors are dense"),
    "min_utilization": (Effect.SPACE, "no least use of the memory is demanded"),
    "allow_overbooking": (Effect.SPACE, "no memory is overbooked"),
}
_NAMES = {"word-bits": "datawidth", "word_bits": "datawidth", "block-size": "block_size"}
_DEFAULT_MHZ = Fraction(1000)


def level(
    name: str, node: Field, inherited: dict[str, Field], bundle: Bundle, *, outermost: bool
) -> dict[str, Any]:
    """The fields of a memory level, all but what it keeps.

    Parameters
    ----------
    inherited : attributes of the containers around it
    """
    given = node.at("attributes")
    known = {key: value for key, value in inherited.items() if key in _SIZES}
    known |= {_NAMES.get(key, key): value for key, value in given.fields().items()}
    bits = _whole(known, "datawidth", given)
    width = _whole(known, "width", given, bits)
    block = _whole(known, "block_size", given, max(1, width // bits))
    buffers = _whole(known, "multiple_buffering", given, 1)
    fields: dict[str, Any] = {"name": name, "datawidth": bits}
    read, write = action_energy(name, ("read", "write"), node, bundle, per=block)
    if read == write:
        fields["energy"] = read
    else:
        fields["energy"] = {"read": read, "write": write}
    elements = _elements(known, given, bits, width)
    if outermost:
        if elements is not None:
            reported_limit(elements, given, bundle)
    elif elements is None:
        raise given.error("has neither depth nor entries nor sizeKB, expected the size of the memory")
    else:
        fields["elements"] = _held(elements, buffers, known, bundle)
        fields["double_buffered" if buffers == 2 else "streamed"] = True
        fields["sliding_window"] = True
    rates = _rates(known, bundle)
    if rates:
        fields["bandwidth"] = rates
    _report_others(known, bundle)
    return fields


def _whole(known: dict[str, Field], key: str, given: Field, default: int | None = None) -> int:
    if key not in known or not known[key]:
        if default is None:
            raise given.at(key).error(f"missing, expected the {key} in bits")
        return default
    return known[key].whole(f"the {key}")


def _elements(known: dict[str, Field], given: Field, bits: int, width: int) -> int | None:
    """What a memory holds; ``None`` where it says nothing, or that it has no limit."""
    if known.get("entries"):
        return None if known["entries"].infinite else known["entries"].whole("the entries")
    if known.get("depth"):
        return None if known["depth"].infinite else known["depth"].whole("the depth") * width // bits
    if known.get("sizeKB"):
        return int(known["sizeKB"].number("a size in kB") * 8192 / bits)
    return None


def _held(elements: int, buffers: int, known: dict[str, Field], bundle: Bundle) -> int:
    """Elements as the file of a machine has them: those of both buffers together."""
    if buffers <= 2:
        return elements - elements % 2 if buffers == 2 else elements
    message = f"of {buffers} buffers, one may be worked on: its part of the memory, filled while in use"
    known["multiple_buffering"].lose(bundle.ledger, Effect.COST, message)
    return max(1, elements // buffers)


def _rates(known: dict[str, Field], bundle: Bundle) -> dict[str, str]:
    """Bandwidths by port; a port that reads and writes share is taken alone."""
    rates: dict[str, str] = {}
    for key in _RATES:
        field = known.get(key)
        if field is None or not field or field.infinite:
            continue
        rate = field.number("elements per cycle")
        if not is_exact_rate(rate):
            field.lose(bundle.ledger, Effect.COST, "is rounded to six decimals")
        rates[key.partition("_")[0]] = rate_text(rate)
    if "shared" in rates and len(rates) > 1:
        message = "reads and writes share one port: what each of them may take of it is not limited"
        known["shared_bandwidth"].lose(bundle.ledger, Effect.COST, message)
        return {"shared": rates["shared"]}
    return rates


def _report_others(known: dict[str, Field], bundle: Bundle) -> None:
    for key, field in known.items():
        if key in _OTHER:
            if field.value not in (None, 0, False, "False", {}, []):
                field.lose(bundle.ledger, *_OTHER[key])
        elif key == "reduction_supported":
            if not field.flag():
                field.lose(bundle.ledger, Effect.COST, "partial sums are added in the memory")
        elif key not in (*_SIZES, *_RATES, "multiple_buffering"):
            field.lose(bundle.ledger, Effect.NONE, "is Accelergy's, for energies and areas")


def inherit(given: Field, inherited: dict[str, Field], bundle: Bundle) -> None:
    """Add a container's attributes to those that its inside inherits."""
    for key, field in given.fields().items():
        inherited[_NAMES.get(key, key)] = field
        if key not in (*_SIZES, "global_cycle_seconds"):
            field.lose(bundle.ledger, Effect.NONE, "is Accelergy's, for energies and areas")


def check_compute(given: Field, bundle: Bundle) -> None:
    """Note the attributes of the multiplier; only its width in bits has a meaning here."""
    for key, field in given.fields().items():
        if key not in ("datawidth", "multiplier_width", "global_cycle_seconds"):
            field.lose(bundle.ledger, Effect.NONE, "is Accelergy's, for energies and areas")


def element_bits(levels: Sequence[dict[str, Any]], bundle: Bundle) -> int:
    """Bits of an element: the user's word, or what most memories hold (sizes are in elements)."""
    if bundle.settings.element_bits is not None:
        return bundle.settings.element_bits
    widths: Counter[int] = Counter(level["datawidth"] for level in levels)
    return widths.most_common(1)[0][0]


def clock(nodes: Sequence[Field], variables: Field, bundle: Bundle) -> Fraction:
    """The clock in MHz, where some node or the variables say how long a cycle is."""
    for place in (*(node.at("attributes") for node in nodes), variables):
        seconds = place.at("global_cycle_seconds")
        if seconds:
            period = seconds.number("the seconds of a cycle")
            if period == 0:
                raise seconds.error("expected the seconds of a cycle above 0")
            return Fraction(round(1 / period), 10**6)
    if nodes:
        message = (
            "no cycle time (global_cycle_seconds) is given: 1 ns, for times in seconds only (or --clock)"
        )
        nodes[0].lose(bundle.ledger, Effect.NONE, message)
    return _DEFAULT_MHZ


def action_energy(
    name: str, actions: Sequence[str], node: Field, bundle: Bundle, per: int = 1
) -> tuple[Fraction, Fraction]:
    """pJ per element of a component's actions: the user's word, or the table's over the elements of a word.

    Where neither states them they are 0, which is a loss.

    Parameters
    ----------
    name : of the component; the user's word on it goes first
    actions : the one that reads first, the one that writes last; ``compute`` alone for a MAC
    node : the component in its file
    bundle : collects what is read, settings, tables of energies and losses
    per : elements that one action moves
    """
    energies = bundle.settings.energies
    given = energies.get(name) or (energies.get("MAC") if "compute" in actions else None)
    if given is not None:
        return given
    table = bundle.action_energies.get(name)
    if table is None:
        message = "this file lacks its energy: 0 pJ (add the ERT, or --energy)"
        node.lose(bundle.ledger, Effect.COST, message)
        return Fraction(0), Fraction(0)
    for action in actions:
        if action not in table:
            raise node.error(f"its energies have no {action!r}, expected one of: {', '.join(sorted(table))}")
    per_action = [energy_of(table[action] / per, node, bundle.ledger) for action in actions]
    update = table.get("update")
    if update is not None and actions != ("compute",) and update / per != per_action[-1]:
        node.lose(bundle.ledger, Effect.COST, "an update costs another energy than a write: here the same")
    return per_action[0], per_action[-1]
