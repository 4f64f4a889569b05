"""Machine files among the dataflows of a co-design, as they are or with fields that vary.

A field is named as for ``explore``, behind the machine's name: ``strip.levels.BUF.capacity=8kB,16kB``.  A
*variant* is one combination of the values of all axes; each is a chip of its own, on which all is searched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from tilewright.foundation.description import names_a_file
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.design_space import DesignSpace, design_space
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import list_presets, load_description, load_engine
from tilewright.hardware.mapping.styles import dataflow_names
from tilewright.hardware.mapping.variations import FLAG, Variation, check_variations
from tilewright.hardware.scheduling.own_engine import expect_engine_of_system

MOST_VARIANTS = 1_000
"""Each is searched on every partition."""

Place = tuple[int, ...]
"""A variant: its point on every axis."""


@dataclass(frozen=True)
class OwnEngines:
    """The machine files among the dataflows.

    Parameters
    ----------
    kept : engines that stay as they are, by name
    files : plain data of the machine files that vary, by name
    axes : what varies; every field begins with the name of its machine

    Raises
    ------
    InputError : for a field of no machine file that varies, and where no variant of one is a machine
    """

    kept: Mapping[str, Engine] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[Variation, ...] = ()

    def __post_init__(self) -> None:
        check_variations(self.axes)
        for axis in self.axes:
            for path in axis.fields:
                self.owner(path)
        count = prod(len(axis.values) for axis in self.axes)
        if count > MOST_VARIANTS:
            raise InputError(FLAG, None, f"{count:,} variants, expected at most {MOST_VARIANTS:,}")

    @property
    def names(self) -> tuple[str, ...]:
        """Of all machine files."""
        return (*self.kept, *self.files)

    def owner(self, path: str) -> str:
        """The machine that a field is of; raises ``InputError``."""
        owner = machine_of(path, self.files)
        if owner is None:
            named = ", ".join(self.names) or "none is given"
            message = f"expected the name of a machine file among the dataflows and a dot first ({named})"
            raise InputError(FLAG, path, message)
        return owner

    @cached_property
    def _spaces(self) -> dict[str, tuple[DesignSpace, tuple[int, ...]]]:
        """Per machine, its own designs, and on which axes it varies."""
        spaces = {}
        for name, data in self.files.items():
            axes = [(index, self._part(axis, name)) for index, axis in enumerate(self.axes)]
            own = [(index, axis) for index, axis in axes if axis is not None]
            where = f"{FLAG} {name}"
            spaces[name] = (
                design_space(data, where, name, [axis for _, axis in own]),
                tuple(index for index, _ in own),
            )
        return spaces

    @cached_property
    def variants(self) -> dict[Place, dict[str, Engine]]:
        """The engines of every variant by name, without variants of which one is no machine.

        Raises
        ------
        InputError : where every one is refused, with the reason for the first
        """
        known: dict[Place, dict[str, Engine]] = {}
        spaces, first = self._spaces, ""
        for place in product(*(range(len(axis.values)) for axis in self.axes)):
            try:
                known[place] = {**self.kept, **{name: self._engine(name, place) for name in spaces}}
            except ValueError as error:
                first = first or str(error)
        if not known:
            raise InputError(first, None, f"all {self.count} variants are refused so")
        return known

    def _part(self, axis: Variation, name: str) -> Variation | None:
        """What of an axis varies one machine; ``None`` where that is nothing."""
        places = [index for index, path in enumerate(axis.fields) if machine_of(path, self.files) == name]
        if not places:
            return None
        fields = tuple(axis.fields[index].removeprefix(f"{name}.") for index in places)
        return Variation(fields, tuple(tuple(row[index] for index in places) for row in axis.values))

    def at(self, place: Place) -> dict[str, Engine]:
        """The engines of a variant by name."""
        return self.variants[place]

    @property
    def count(self) -> int:
        """Of all variants, refused ones too."""
        return prod(len(axis.values) for axis in self.axes)

    def fields(self, place: Place) -> dict[str, Any]:
        """What a variant changes, by field."""
        changes: dict[str, Any] = {}
        for axis, index in zip(self.axes, place, strict=True):
            changes |= axis.changes(index)
        return changes

    def _engine(self, name: str, place: Place) -> Engine:
        """The engine of a machine file that varies, checked as every engine of a system."""
        space, own = self._spaces[name]
        at = 0
        for index in own:
            at = at * len(self.axes[index].values) + place[index]
        design = space.designs[at]
        if design.engine is None:
            raise ValueError(design.refusal)
        expect_engine_of_system(design.engine)
        return design.engine


NO_ENGINES = OwnEngines()
"""Of a co-design without machine files."""


def machine_of(path: str, names: Mapping[str, Any]) -> str | None:
    """The machine whose name a field begins with, the longest of several; names may have dots in them."""
    fitting = [name for name in names if path.startswith(f"{name}.")]
    return max(fitting, key=len, default=None)


def named_flows(names: Sequence[str], axes: Sequence[Variation] = ()) -> tuple[list[str], OwnEngines]:
    """Dataflow styles and machines as a user names them, in their order, and the machines.

    Parameters
    ----------
    names : of dataflow styles, presets, and machine files
    axes : fields of the machines that vary

    Raises
    ------
    InputError : for an unknown name, a file that describes no machine, one that cannot be part of a system,
        or a field of none of them
    """
    flows: list[str] = []
    engines: dict[str, Engine] = {}
    texts: dict[str, str] = {}
    for name in names:
        if name in dataflow_names():
            flows.append(name)
            continue
        if not names_a_file(name) and name not in list_presets():
            known = [*dataflow_names(), *list_presets()]
            raise InputError("--dataflows", None, f"{unknown_name(name, known)}, or a machine file")
        engine = load_engine(name)
        if engine.name in dataflow_names() or engines.setdefault(engine.name, engine) != engine:
            message = f"two different engines are called {engine.name}, expected a file of another name"
            raise InputError("--dataflows", None, message)
        flows.append(engine.name)
        texts[engine.name] = name
    varied = {machine_of(path, engines) for axis in axes for path in axis.fields}
    kept = {name: engine for name, engine in engines.items() if name not in varied}
    for engine in kept.values():
        try:
            expect_engine_of_system(engine)
        except ValueError as error:
            raise InputError("--dataflows", None, str(error)) from None
    files = {name: load_description(texts[name])[0] for name in engines if name in varied}
    return flows, OwnEngines(kept, files, tuple(axes))
