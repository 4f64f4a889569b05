"""Timeloop's problems: a shape (dimensions, data spaces, coefficients) and an instance, as one layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.roles import ROLE_NAMES, likes, operand_order
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role

PEER = "timeloop"
TOPS: tuple[str, ...] = ("problem",)

_CONVOLUTION: dict[str, Any] = {
    "dimensions": list("RSPQCKN"),
    "coefficients": [
        {"name": name, "default": 1} for name in ("Wstride", "Hstride", "Wdilation", "Hdilation")
    ],
    "data_spaces": [
        {"name": "Weights", "projection": ["C", "K", "R", "S"]},
        {
            "name": "Inputs",
            "projection": [
                "N",
                "C",
                [["R", "Wdilation"], ["P", "Wstride"]],
                [["S", "Hdilation"], ["Q", "Hstride"]],
            ],
        },
        {"name": "Outputs", "projection": ["N", "K", "Q", "P"], "read_write": True},
    ],
}
_BUILT_IN = ("cnn-layer", "cnn_layer")
_NOT_DIMENSIONS = ("densities", "name", "shape", "version", "instance")


def recognises(data: object) -> bool:
    """Whether a file has a problem."""
    return isinstance(data, dict) and "problem" in data


@dataclass(frozen=True, slots=True)
class _Space:
    """A data space: name, index expressions (dimension and stride) per axis, whether it is written."""

    name: str
    axes: tuple[tuple[tuple[str, int], ...], ...]
    written: bool
    field: Field

    @property
    def dims(self) -> list[list[str]]:
        return [[dim for dim, _ in axis] for axis in self.axes]

    @property
    def text(self) -> str:
        axes = ["+".join(dim if step == 1 else f"{step}*{dim}" for dim, step in axis) for axis in self.axes]
        return f"{self.name}[{','.join(axes)}]"


def read(top: Field, bundle: Bundle) -> None:
    """Add the problem's layer."""
    problem = top.at("problem")
    fields = problem.fields()
    shape = fields.get("shape", problem.at("shape"))
    if isinstance(shape.value, str):
        shape.one_of(_BUILT_IN)
        shape = replace(shape, value=_CONVOLUTION)
    instance = fields.get("instance", problem)
    name = shape.value.get("name") if isinstance(shape.value, dict) else None
    given = instance.at("name").value or name
    layer = given if isinstance(given, str) and given.strip() else "layer"
    bundle.layers.append((layer, _operator(shape, instance, bundle)))


def _operator(shape: Field, instance: Field, bundle: Bundle) -> Operator:
    dims = [entry.text("a dimension") for entry in shape.at("dimensions").entries()]
    if not dims:
        raise shape.at("dimensions").error("missing, expected a list of dimensions")
    values = instance.fields()
    steps = _coefficients(shape, values)
    bounds: dict[str, int] = {}
    for dim in dims:
        bounds[dim] = instance.at(dim).whole("the bound of a dimension")
    for key, field in values.items():
        if key == "densities" and field:
            field.lose(bundle.ledger, Effect.COST, "sparse tensors are taken for dense ones")
        elif key not in bounds and key not in steps and key not in _NOT_DIMENSIONS:
            field.lose(bundle.ledger, Effect.NONE, "is neither a dimension nor a coefficient of the shape")
    spaces = [_space(entry, steps, bounds) for entry in shape.at("data_spaces").entries()]
    outputs = [space for space in spaces if space.written]
    if len(outputs) != 1 or len(spaces) < 2:
        listed = ", ".join(space.name for space in outputs) or "none"
        raise shape.at("data_spaces").error(
            f"expected one data space with read_write among several, got {listed}"
        )
    for dim in [dim for dim in dims if not any(dim in axis for space in spaces for axis in space.dims)]:
        if bounds.pop(dim) > 1:
            raise instance.at(dim).error(f"no data space has the dimension {dim}")
        instance.at(dim).lose(bundle.ledger, Effect.NONE, f"{dim}=1 is an index of no data space, left out")
    inputs = [space for space in spaces if not space.written]
    weights = operand_order([space.name for space in inputs])
    _report_roles(inputs, weights, bundle)
    named = likes(
        list(bounds),
        [axis for space in inputs if space.name == weights for axis in space.dims],
        [axis for space in inputs if space.name != weights for axis in space.dims],
        outputs[0].dims,
    )
    line = f"{outputs[0].text} += {' * '.join(space.text for space in inputs)} : "
    line += ", ".join(f"{dim}={bound} as {named[dim]}" for dim, bound in bounds.items())
    try:
        return nest(line)
    except ValueError as error:
        raise shape.error(f"no nest of loops: {error}") from None


def _coefficients(shape: Field, values: dict[str, Field]) -> dict[str, int]:
    steps: dict[str, int] = {}
    for entry in shape.at("coefficients").entries():
        name = entry.at("name").text("a coefficient's name")
        field = values.get(name) or entry.at("default")
        steps[name] = field.whole("a coefficient") if field else 1
    return steps


def _space(entry: Field, steps: dict[str, int], bounds: dict[str, int]) -> _Space:
    name = entry.at("name").text("a data space's name")
    axes = []
    for axis in entry.at("projection").entries():
        terms = [axis] if isinstance(axis.value, str) else axis.entries()
        axes.append(tuple(_term(term, steps, bounds) for term in terms))
    return _Space(name, tuple(axes), entry.at("read_write").flag(), entry)


def _term(term: Field, steps: dict[str, int], bounds: dict[str, int]) -> tuple[str, int]:
    """A dimension, alone or with a coefficient."""
    parts = [term.text()] if isinstance(term.value, str) else [part.text() for part in term.entries()]
    dims = [part for part in parts if part in bounds]
    if len(dims) != 1 or len(parts) > 2:
        raise term.error(f"expected a dimension ({', '.join(bounds)}) and at most one coefficient")
    [*others] = [part for part in parts if part not in bounds]
    if others and others[0] not in steps:
        raise term.error(f"unknown coefficient {others[0]!r}, expected one of: {', '.join(steps) or 'none'}")
    return dims[0], steps[others[0]] if others else 1


def _report_roles(inputs: list[_Space], weights: str | None, bundle: Bundle) -> None:
    """Say which data space is taken for the weights where its name does not."""
    for space in inputs:
        role = Role.WEIGHT if space.name == weights else Role.INPUT
        if ROLE_NAMES.get(space.name.lower()) is not role:
            message = f"{space.name} is taken for {role.value}, where a machine distinguishes tensors"
            space.field.lose(bundle.ledger, Effect.NONE, message)
