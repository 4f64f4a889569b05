"""A fused mapping as an indented tree: shared loops, what lives where, and the layers that run in turn.

::

    DRAM   qk.A   qk.B   av.B   av.C
    for av.M in 8 (tile 64)
      GBUF   qk.C 64 kB, passed on
      in turn
        qk: gemm M64 N512 K64, 8 turns
"""

from __future__ import annotations

import textwrap

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, shapes_of, sized, stored_around
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.fused.turns import LeafTurns
from tilewright.formulation.mapping.fused.widths import at_widths
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.operator import shape_text
from tilewright.report.text.mapping.loop_nest import loop_nest
from tilewright.report.text.quantities import bytes_text, energy_text
from tilewright.report.text.tables import head_text, plain_table
from tilewright.workloads.mapping.operator import Role


def fused_tree(group: FusedGroup, engine: Engine, tree: Branch, evaluation: FusedEvaluation) -> str:
    """The tree as text, ending in a newline.

    Parameters
    ----------
    group, engine : the layers and the machine
    tree, evaluation : the fused mapping and what the evaluator says of it
    """
    return "\n".join(_branch(group, engine, tree, evaluation, 0)) + "\n"


def _branch(
    group: FusedGroup, engine: Engine, branch: Branch, evaluation: FusedEvaluation, depth: int
) -> list[str]:
    """A branch's lines; ``depth`` counts the loops and sequences outside it, its indentation."""
    lines: list[str] = []
    for node in branch.nodes:
        lead = "  " * depth
        if isinstance(node, SharedLoop):
            lines += [f"{lead}{text}" for text in _running(engine, branch, node, evaluation)]
            lines.append(f"{lead}for {node.name} (tile {node.tile})")
            depth += 1
        else:
            lines.append(f"{lead}{_store(group, engine, node, evaluation)}")
    lines.append(f"{'  ' * depth}in turn")
    for child in branch.children:
        if isinstance(child, Leaf):
            turns = next(leaf for leaf in evaluation.turns.leaves if leaf.leaf.layer == child.layer)
            lines += _leaf(group, engine, turns, depth + 1)
        else:
            lines += _branch(group, engine, child, evaluation, depth + 1)
    return lines


def _store(group: FusedGroup, engine: Engine, node: SharedStore, evaluation: FusedEvaluation) -> str:
    operator = group.operator(node.layer)
    tensor = operator.tensor(node.tensor)
    level = engine.level(node.level)
    elements = evaluation.turns.tiles.get(node, tensor.footprint(operator.bounds))
    text = f"{node.level}   {node.name} {bytes_text(elements, engine.width(level, tensor.role))}"
    if tensor.is_output and group.read_by(node.layer):
        text += ", passed on"
        text += "" if node.halo == RETAINED else ", halo recomputed"
    return text


def _running(engine: Engine, branch: Branch, loop: SharedLoop, evaluation: FusedEvaluation) -> list[str]:
    """Running maxima and sums of softmaxes whose rows a loop is the first to cut."""
    lines: list[str] = []
    for (reader, operand), running in evaluation.turns.softmaxes.items():
        if running.loop is loop and reader in branch.layers():
            level = engine.levels[running.level]
            size = bytes_text(running.words, engine.width(level, Role.OUTPUT))
            lines.append(f"{level.name}   {reader}.{operand} softmax {size}, running maxima and sums")
    return lines


def _leaf(group: FusedGroup, engine: Engine, turns: LeafTurns, depth: int) -> list[str]:
    layer = turns.leaf.layer
    operator = group.operator(layer)
    shapes = shapes_of(operator, turns)
    lead = "  " * depth
    if not shapes:
        return [f"{lead}{layer}: nothing to do"]
    dims = list(operator.bounds)
    most = {dim: max(shape[0][i] for shape in shapes) for i, dim in enumerate(dims)}
    number = sum(shapes.values())
    own = sized(operator, most)
    shape = shape_text(own)
    sizes = len({sizes for sizes, _ in shapes})
    kinds = f" of {sizes} sizes, at most" if sizes > 1 else ","
    lines = [f"{lead}{layer}: {operator.kind}, {number} turn{'s' * (number > 1)}{kinds} {shape}"]
    names = [level.name for level in engine.levels]
    homes = tuple(
        Storage(tensor, names[levels[-1]]) for tensor, levels in stored_around(group, turns).items() if levels
    )
    nest = loop_nest(own, engine, Mapping((*homes, *turns.leaf.mapping.nodes)))
    return lines + textwrap.indent(nest, lead + "  ").splitlines()


def fused_views(
    name: str, group: FusedGroup, engine: Engine, tree: Branch, evaluation: FusedEvaluation
) -> list[RenderableType]:
    """Whether a fused mapping is legal, its figures, its tree, and what lives where.

    Parameters
    ----------
    name : of the mapping
    group, engine : the layers and the machine
    tree, evaluation : the fused mapping and what the evaluator says of it
    """
    group, engine = at_widths(group, engine)
    verdict = [Text("legal", style="green")]
    if evaluation.violations:
        verdict = [Text(f"illegal: {violation}", style="red") for violation in evaluation.violations]
    outermost = engine.levels[0]
    figures = Table.grid(padding=(0, 3, 0, 0))
    figures.add_row("energy", energy_text(float(evaluation.energy)))
    figures.add_row("cycles", f"{evaluation.cycles:,}")
    moved = evaluation.elements_through(outermost.name)
    size = f"{moved:,} elements" if outermost.widths else bytes_text(moved, engine.element_bits)
    figures.add_row(f"through {outermost.name}", size)
    text = Text(fused_tree(group, engine, tree, evaluation), no_wrap=True, overflow="ignore")
    return [
        head_text(name, f"{len(group.names)} layers", engine.name),
        "",
        *verdict,
        "",
        figures,
        "",
        layer_costs(evaluation),
        "",
        text,
        occupancy_table(evaluation),
    ]


def layer_costs(evaluation: FusedEvaluation) -> Table:
    """Turns, energy and cycles of every layer, and what shared stores move."""
    table = plain_table([("layer", "left"), ("turns", "right"), ("energy", "right"), ("cycles", "right")])
    for cost in evaluation.layers:
        table.add_row(cost.layer, f"{cost.turns:,}", energy_text(float(cost.energy)), f"{cost.cycles:,}")
    for move in evaluation.movements:
        way = f"{move.purpose} in" if move.purpose else "to"
        energy = energy_text(float(move.energy))
        table.add_row(f"{move.tensor} {way} {move.inner}", "", energy, f"{move.cycles:,}")
    return table


def occupancy_table(evaluation: FusedEvaluation) -> Table:
    """What levels hold in every layer's turns."""
    table = plain_table(
        [("turn of", "left"), ("level", "left"), ("held", "right"), ("of", "right"), ("", "left")]
    )
    for room in evaluation.occupied:
        if room.tiles:
            level = room.level if room.part is None else f"{room.level} ({room.part})"
            most = "" if room.most is None else bytes_text(room.most, 1)
            names = ", ".join(name for name, _ in room.tiles)
            table.add_row(room.layer, level, bytes_text(room.bits, 1), most, names)
    return table
