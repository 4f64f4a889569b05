"""The space of a claim, and mappings from outside it, in words."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from tilewright.formulation.mapping.claimed_space import space_text
from tilewright.formulation.objective import Objective
from tilewright.report.records.mapping.document import LayerRecord, SpaceRecord
from tilewright.report.text.quantities import objective_text, percent_text


def record_text(space: SpaceRecord) -> str:
    """``even storage, imperfect factors, tiles ceil(outer/n), cycles<=1000000``."""
    return space_text(space.storage, space.factors, space.tiles, tuple(space.constraints))


def space_lines(layers: Iterable[LayerRecord]) -> list[RenderableType]:
    """A line for every space that layers were searched in."""
    texts = dict.fromkeys(record_text(layer.space) for layer in layers if layer.space is not None)
    return [Text(f"space: {text}", style="dim") for text in texts]


def out_of_space_text(layer: LayerRecord, objective: Objective) -> str | None:
    """What is known of the best mapping from outside the space; ``None`` where there is none."""
    beside = layer.beside
    if beside is None:
        return None
    shown = objective_text(objective, beside.value)
    text = f"a mapping from outside the space ({beside.source}) has {shown}"
    if layer.value is not None and beside.value < layer.value:
        what = "the optimum" if layer.status == "optimal" else "the best found"
        text += f", {percent_text(float(1 - beside.value / layer.value))} below {what} of the space"
    return f"{text}: {beside.reason}"


def out_of_space_lines(layers: Iterable[LayerRecord], objective: Objective) -> list[RenderableType]:
    """A blank line, and a line for every layer with a mapping from outside its space."""
    texts = [(layer.name, out_of_space_text(layer, objective)) for layer in layers]
    lines: list[RenderableType] = [Text(f"{name}: beside: {text}", "yellow") for name, text in texts if text]
    return ["", *lines] if lines else []
