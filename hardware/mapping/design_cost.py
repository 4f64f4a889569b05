"""What a design costs besides what it computes: its memory, its PEs, or a user's formula of its sizes."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from fractions import Fraction

from tilewright.foundation.errors import InputError
from tilewright.hardware.arithmetic import Formula, parse_formula
from tilewright.hardware.mapping.design_space import Design

FLAG = "--against"
CAPACITY, PES, AREA = "capacity", "pes", "area"


def design_quantities(design: Design) -> dict[str, Fraction]:
    """Quantities that a cost may speak of.

    ``capacity`` (bytes of all memories but unbounded ones, all instances), ``pes``, ``area`` (mm2 of all that
    states one), and for every level of a plain name ``NAME.capacity`` (bytes of one instance, both buffers)
    and ``NAME.instances``.

    Raises
    ------
    ValueError : for a design that is no machine
    """
    if design.engine is None:
        raise ValueError(design.refusal)
    quantities = {PES: Fraction(design.engine.instances), CAPACITY: Fraction(0)}
    if design.engine.area:
        quantities[AREA] = sum(design.engine.area.values(), Fraction(0))
    instances = Fraction(1)
    for level, size in zip(design.engine.levels, design.sizes, strict=True):
        if size is not None:
            quantities[CAPACITY] += size * instances
        if level.name.isidentifier() and not keyword.iskeyword(level.name):
            quantities[f"{level.name}.instances"] = instances
            if size is not None:
                quantities[f"{level.name}.capacity"] = size
        if level.fanout is not None:
            instances *= level.fanout.instances
    return quantities


def design_costs(text: str, designs: Sequence[Design]) -> list[Fraction]:
    """The cost of every design; raises ``InputError`` for a formula that cannot be read or has no value."""
    quantities = [design_quantities(design) for design in designs]
    names = frozenset.intersection(*(frozenset(known) for known in quantities))
    try:
        formula: Formula = parse_formula(text, names)
        return [formula.value(known) for known in quantities]
    except ValueError as error:
        raise InputError(FLAG, None, str(error)) from None
