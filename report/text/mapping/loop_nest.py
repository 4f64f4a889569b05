"""A mapping as an indented loop nest: what every level holds, and every loop with its tile.

::

    DRAM        I 324 kB   W 4.5 MB   O 196 kB
    for C in 8 (tile 64)
      for K in 16 (tile 32)
        GLB       I 40.5 kB   O 12.25 kB
        par C in 4 (tile 16) on y
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.report.records.mapping.operator import statement_text
from tilewright.report.text.quantities import bytes_text
from tilewright.workloads.mapping.operator import Operator

WIDTH = 80
"""Columns that the nest fits in, unless its loops alone are deeper."""

_GAP = 3


def loop_nest(operator: Operator, engine: Engine, mapping: Mapping) -> str:
    """The nest as text, ending in a newline.

    Sizes are those of one instance's tile, with the number of instances that keep it together.  A loop whose
    last tile is smaller states its size.
    """
    rows = _rows(operator, engine, mapping)
    depth = max(row[0] for row in rows)
    step = 2 if 2 * depth <= WIDTH // 2 else 1
    label = max((len(text) for _, text, parts in rows if parts), default=0) + _GAP
    lines: list[str] = []
    for level, text, parts in rows:
        lead = " " * (step * level)
        if parts:
            lines += _stores(lead, text.ljust(label), parts)
        else:
            lines += textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=lead + "    ")
    return "\n".join(lines) + "\n"


def _stores(lead: str, label: str, parts: Sequence[str]) -> list[str]:
    """A level's tiles, side by side as far as they fit."""
    lines = [lead + label]
    for index, part in enumerate(parts):
        gap = " " * _GAP if index and not lines[-1].isspace() else ""
        if index and len(lines[-1]) + len(gap) + len(part) > WIDTH:
            lines.append(" " * len(lead + label))
            gap = ""
        lines[-1] += gap + part
    return lines


def _rows(operator: Operator, engine: Engine, mapping: Mapping) -> list[tuple[int, str, list[str]]]:
    """Depth, text and (for a level) tile sizes of every line."""
    from tilewright.formulation.mapping.directives import Directives, TensorTile

    engine = fitted(engine, operator)
    rows: list[tuple[int, str, list[str]]] = []
    tile, depth = dict(operator.bounds), 0
    open_level = ""
    lines = Directives.of(operator, mapping, engine).lines
    shares = {(line.name, line.level): line.share for line in lines if isinstance(line, TensorTile)}
    for node in mapping.nodes:
        if isinstance(node, Storage):
            tensor = operator.tensor(node.tensor)
            bits = engine.width(engine.level(node.level), tensor.role)
            size = f"{node.tensor} {bytes_text(tensor.footprint(tile), bits)}"
            share = shares[node.tensor, node.level]
            size += f" among {share}" if share > 1 else ""
            if node.level != open_level:
                rows.append((depth, node.level, []))
            rows[-1][2].append(size)
            open_level = node.level
            continue
        outer, open_level = tile[node.dim], ""
        trips = -(-outer // node.tile)
        last = outer - (trips - 1) * node.tile
        rest = f", last {last}" if last != node.tile else ""
        word, site = _words(node)
        tiles = f" (tile {node.tile}{rest})" if node.tile > 1 or rest else ""
        rows.append((depth, f"{word} {node.dim} in {trips}{tiles}{site}", []))
        tile[node.dim] = node.tile
        depth += 1
    rows.append((depth, statement_text(operator), []))
    return rows


def _words(node: Temporal | Spatial) -> tuple[str, str]:
    """What a loop is, and where."""
    if isinstance(node, Spatial):
        return "par", f" on {node.axis}"
    return "for", f" at {node.level}" if node.level else ""
