"""ZigZag's workloads: equations, relations of dimensions and loop sizes, as layers."""

from __future__ import annotations

import re

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.roles import likes, operand_order
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.layer_text import unique_name
from tilewright.workloads.mapping.operator import Operator, Role

PEER = "zigzag"
TOPS: tuple[str, ...] = ()

_TENSOR = re.compile(r"(?P<name>\w+)(?P<axes>(?:\[\w*\])*)")
_EQUATION = re.compile(r"([^=+]+?)\s*(\+?=)\s*([^=]+)")
_RELATION = re.compile(r"(\w+)=(?:(\d+)\*)?(\w+)\+(?:(\d+)\*)?(\w+)")
_ROLES = {"I": Role.INPUT, "W": Role.WEIGHT, "O": Role.OUTPUT}
_QUIET = {"id", "name", "equation", "dimension_relations", "loop_dims", "loop_sizes", "operand_precision"}
_QUIET |= {"operator_type", "pr_loop_dims", "pr_loop_sizes", "padding", "operand_source"}

_Terms = list[tuple[str, int]]


def recognises(data: object) -> bool:
    """Whether a file is a list of layers with equations."""
    return isinstance(data, list) and any(isinstance(entry, dict) and "equation" in entry for entry in data)


def read(top: Field, bundle: Bundle) -> None:
    """Add every layer."""
    names: set[str] = {name for name, _ in bundle.layers}
    for index, entry in enumerate(top.entries()):
        own = entry.at("name").value
        name = own if isinstance(own, str) and own.strip() else f"layer{entry.at('id').value or index}"
        bundle.layers.append((unique_name(name, names), _operator(entry, bundle)))
        _read_precision(entry.at("operand_precision"), bundle)
        _report_others(entry, bundle)


def _operator(entry: Field, bundle: Bundle) -> Operator:
    dims = [item.text("a dimension") for item in entry.at("loop_dims").entries()]
    sizes = [item.whole("a loop's size") for item in entry.at("loop_sizes").entries()]
    if len(dims) != len(sizes) or not dims:
        raise entry.at("loop_sizes").error(
            f"expected as many as loop_dims, which has {len(dims)}, got {len(sizes)}"
        )
    bounds = dict(zip(dims, sizes, strict=True))
    sums = _relations(entry)
    place = entry.at("equation")
    match = _EQUATION.fullmatch(place.text("an equation such as O[b][k]+=I[b][c]*W[k][c]"))
    if match is None:
        raise place.error("expected one output, = or +=, and operands")
    product = "*" in match[3] or "+" not in match[3]
    parts = [match[1], *re.split(r"[*+]", match[3])]
    tensors = [_tensor(part, place, bounds, sums) for part in parts]
    operands = tensors[1:]
    weights = operand_order([name for name, _ in operands])
    used = {dim for _, axes in tensors for axis in axes for dim, _ in axis}
    for dim in [dim for dim in dims if dim not in used]:
        if bounds.pop(dim) > 1:
            raise entry.at("loop_dims").error(f"{dim} is no index of the equation")
    known = likes(
        list(bounds),
        [[dim for dim, _ in axis] for name, axes in operands if name == weights for axis in axes],
        [[dim for dim, _ in axis] for name, axes in operands if name != weights for axis in axes],
        [[dim for dim, _ in axis] for axis in tensors[0][1]],
    )
    named = known | {dim: loop for dim, loop in _usual(known).items() if dim in known}
    texts = [f"{name}[{','.join(_index(axis) for axis in axes)}]" for name, axes in tensors]
    reduces = any(dim not in {d for axis in tensors[0][1] for d, _ in axis} for dim in bounds)
    sign = "+=" if reduces or product else "="
    line = f"{texts[0]} {sign} {' * '.join(texts[1:])} : "
    line += ", ".join(f"{dim}={bound} as {named[dim]}" for dim, bound in bounds.items())
    if not product:
        place.lose(bundle.ledger, Effect.NONE, "operands are added, which moves the same data as a product")
    try:
        return nest(line)
    except ValueError as error:
        raise place.error(f"no nest of loops: {error}") from None


def _usual(known: dict[str, str]) -> dict[str, str]:
    """ZigZag's own names of a convolution's loops, where the tensors agree with them."""
    usual = {"B": "N", "G": "G", "K": "K", "C": "C", "OY": "P", "OX": "Q", "FY": "R", "FX": "S"}
    alike = [{"N", "P", "Q"}, {"C", "R", "S"}, {"K"}, {"G"}]
    agree = {dim: any({loop, known.get(dim)} <= kind for kind in alike) for dim, loop in usual.items()}
    return usual if all(agree[dim] for dim in usual if dim in known) and set(known) <= set(usual) else {}


def _relations(entry: Field) -> dict[str, _Terms]:
    """Per index that is a sum, its dimensions with their strides, in small letters."""
    relations: dict[str, _Terms] = {}
    for relation in entry.at("dimension_relations").entries():
        match = _RELATION.fullmatch("".join(relation.text().split()).lower())
        if match is None:
            raise relation.error("expected a relation such as ix=2*ox+1*fx")
        name, first, left, second, right = match.groups()
        relations[name] = [(left, int(first or 1)), (right, int(second or 1))]
    return relations


def _tensor(
    text: str, place: Field, bounds: dict[str, int], sums: dict[str, _Terms]
) -> tuple[str, list[_Terms]]:
    match = _TENSOR.fullmatch(text.strip())
    if match is None:
        raise place.error(f"cannot read {text.strip()!r}, expected a tensor such as W[k][c]")
    by_small = {dim.lower(): dim for dim in bounds}
    axes: list[_Terms] = []
    for index in re.findall(r"\[(\w*)\]", match["axes"]):
        if not index:
            continue
        terms = sums.get(index.lower(), [(index.lower(), 1)])
        for dim, step in terms:
            if dim not in by_small or step < 1:
                raise place.error(f"unknown index {dim!r}, expected one of: {', '.join(by_small)}")
        axes.append([(by_small[dim], step) for dim, step in terms])
    return match["name"], axes


def _index(axis: _Terms) -> str:
    return "+".join(dim if step == 1 else f"{step}*{dim}" for dim, step in axis)


def _read_precision(place: Field, bundle: Bundle) -> None:
    """Bits of elements by role; all layers have to agree, for a machine has them once."""
    for key, field in place.fields().items():
        role = _ROLES.get(key)
        if role is None and key != "O_final":
            continue
        bits = field.whole("bits of an element")
        if role is None:
            known = bundle.final_bits = bits if bundle.final_bits is None else bundle.final_bits
        else:
            known = bundle.element_bits.setdefault(role, bits)
        if known != bits:
            message = f"an earlier layer has {known} bits: all layers count as having these"
            field.lose(bundle.ledger, Effect.COST, message)


def _report_others(entry: Field, bundle: Bundle) -> None:
    padding = entry.at("padding")
    if any(side.value for pair in padding.entries() for side in pair.entries()):
        padding.lose(bundle.ledger, Effect.COST, "elements of the padding are moved like others")
    source = entry.at("operand_source")
    if any(field.value != entry.at("id").value for field in source.fields().values()):
        source.lose(bundle.ledger, Effect.NONE, "layers are not linked: each is mapped by itself")
    for key, extra in entry.fields().items():
        if key not in _QUIET:
            extra.lose(bundle.ledger, Effect.NONE, "is not read")
