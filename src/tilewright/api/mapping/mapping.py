"""One mapping of one layer, as the interface shows it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.display import Displayed
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.disk import check_writable, write_file
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.mapping_file import StoredMapping, render_mapping
from tilewright.report.text.mapping.loop_nest import loop_nest
from tilewright.workloads.mapping.operator import Operator

if TYPE_CHECKING:
    from tilewright.api.mapping.drawing import Drawing


class LayerMapping(Displayed):
    """A mapping with the layer and the machine that it belongs to.

    Parameters
    ----------
    name : of the layer
    nodes : the loops and stores
    energy_pj, cycles : what it costs, where that is known
    """

    def __init__(
        self,
        name: str,
        nodes: Mapping,
        operator: Operator,
        engine: Engine,
        energy_pj: float | None = None,
        cycles: int | None = None,
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.operator = operator
        self.engine = engine
        self.energy_pj = energy_pj
        self.cycles = cycles

    def to_dict(self) -> dict[str, Any]:
        """The nodes as plain data, outermost first."""
        return {"nodes": self.nodes.to_data()}

    def rows(self) -> list[dict[str, Any]]:
        """One row per node, outermost first: loops with their tiles, stores with their levels."""
        return self.nodes.to_data()

    @property
    def loop_nest(self) -> str:
        """The indented loop nest, with what every level holds."""
        return loop_nest(self.operator, self.engine, self.nodes)

    @property
    def directives(self) -> str:
        """The mapping as tensor-centric directives, from the PEs outwards."""
        from tilewright.formulation.mapping.directives import Directives, write_directives

        return write_directives(Directives.of(self.operator, self.nodes, self.engine))

    def drawing(self) -> Drawing:
        """The mapping as a picture, which notebooks show: levels, tiles and loops, the array, first steps."""
        from tilewright.api.mapping.drawing import layer_drawing

        stored = StoredMapping(self.name, self.nodes, self.operator, self.engine)
        return layer_drawing(stored, self.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a mapping file, which ``tilewright evaluate`` and `evaluate` read.

        Raises
        ------
        InputError : where the file cannot be written to
        OutputError : where writing fails
        """
        path = Path(path)
        check_writable(path)
        write_file(path, render_mapping(StoredMapping(self.name, self.nodes, self.operator, self.engine)))

    def views(self) -> Sequence[RenderableType]:
        """The loop nest."""
        return [Text(self.loop_nest.rstrip("\n"), no_wrap=True, overflow="ignore")]

    def __repr__(self) -> str:
        loops = sum(1 for _ in self.nodes.loops(self.operator))
        return f"LayerMapping({self.name!r}, {loops} loops)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayerMapping) and (other.nodes, other.operator, other.engine) == (
            self.nodes,
            self.operator,
            self.engine,
        )

    def __hash__(self) -> int:
        return hash(self.nodes)
