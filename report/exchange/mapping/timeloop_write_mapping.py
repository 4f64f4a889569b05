"""Mappings as Timeloop's directives.

A level has its stores, then its loops in time, then those of the arrays below it, each dimension once in
each.  What stands otherwise cannot be said and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.formulation.mapping.mapping import LoopStep, Mapping, Node, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.mapping.machine_text import yaml_text
from tilewright.report.exchange.mapping.timeloop_sites import Sites, is_on_y
from tilewright.report.exchange.mapping.timeloop_write_problem import letters
from tilewright.report.exchange.outputs import NotStatedError, Output
from tilewright.workloads.mapping.operator import Operator

PEER = "timeloop"


@dataclass(slots=True)
class _Level:
    """What stands at one level."""

    stores: list[str] = field(default_factory=list)
    loops: list[LoopStep] = field(default_factory=list)
    arrays: dict[str, list[LoopStep]] = field(default_factory=dict)


def write(bundle: Bundle) -> list[Output]:
    """One file per mapping."""
    outputs = []
    for stored in bundle.mappings:
        if stored.operator is None or stored.engine is None:
            missing = "layer" if stored.operator is None else "arch"
            raise InputError(stored.name, missing, "missing, expected one in the file or as a flag")
        try:
            data = directives(stored.mapping, stored.operator, stored.engine)
        except NotStatedError as error:
            raise InputError(
                stored.name, "mapping", f"{error}, which Timeloop's directives cannot say"
            ) from None
        prefix = f"{stored.name}." if len(bundle.mappings) > 1 else ""
        outputs.append(Output("mapping", f"{prefix}mapping.yaml", yaml_text({"mapping": data})))
    return outputs


def canonical(mapping: Mapping, operator: Operator, engine: Engine) -> Mapping:
    """The same mapping as a reader of its directives sees it.

    Loops of a single iteration are left out, stores of a level stand in the layer's sequence, loops of
    different axes in the machine's.

    Raises
    ------
    NotStatedError : for a mapping that has no directives
    """
    levels = _levels(mapping, operator, engine)
    nodes: list[Node] = []
    for name, level in levels.items():
        nodes += [Storage(tensor, name) for tensor in level.stores]
        host = None if level.stores else name
        nodes += [Temporal(step.node.dim, step.node.tile, host) for step in level.loops]
        for steps in level.arrays.values():
            nodes += [step.node for step in steps]
    return Mapping(tuple(nodes))


def directives(mapping: Mapping, operator: Operator, engine: Engine) -> list[dict[str, Any]]:
    """Plain data of the directives, outermost level first; raises ``NotStatedError``."""
    names = letters(operator)
    lasts = _last_rounds(mapping, operator)
    tensors = [tensor.name for tensor in operator.tensors]
    directives_made: list[dict[str, Any]] = []
    for name, level in _levels(mapping, operator, engine).items():
        bypassed = [tensor for tensor in tensors if tensor not in level.stores]
        directives_made.append({"target": name, "type": "datatype", "keep": level.stores, "bypass": bypassed})
        directives_made.append({"target": name, "type": "temporal", **_loops(level.loops, names, lasts)})
        for array, steps in level.arrays.items():
            inter = f"inter_{array}_spatial"
            on_x = [step for step in steps if not is_on_y(array, _axis(step))]
            loops = _loops([step for step in steps if step not in on_x] + on_x, names, lasts)
            directives_made.append({"target": inter, "type": "datatype", "keep": [], "bypass": tensors})
            directives_made.append({"target": inter, "type": "temporal", **_loops([], names, lasts)})
            directives_made.append({"target": inter, "type": "spatial", **loops, "split": len(on_x)})
    return directives_made


def _loops(steps: Sequence[LoopStep], names: dict[str, str], lasts: dict[int, int]) -> dict[str, str]:
    """Factors of all dimensions, and their order, innermost first; loops on X come before those on Y."""
    order = [names[step.node.dim] for step in reversed(steps)]
    order += [letter for letter in names.values() if letter not in order]
    factors = {letter: f"{letter}=1" for letter in names.values()}
    for step in steps:
        last = lasts.get(id(step.node), step.trip)
        rounds = f"{step.trip}" if last == step.trip else f"{step.trip},{last}"
        factors[names[step.node.dim]] = f"{names[step.node.dim]}={rounds}"
    return {"factors": " ".join(factors.values()), "permutation": "".join(order)}


def _last_rounds(mapping: Mapping, operator: Operator) -> dict[int, int]:
    """Iterations of every loop in the last round of all outside it, by node.

    Raises
    ------
    NotStatedError : where a tile does not divide the one around it, the whole dimension apart
    """
    around: dict[str, int] = {}
    rounds: dict[int, int] = {}
    for step in mapping.loops(operator):
        dim, tile = step.node.dim, step.node.tile
        if dim in around and around[dim] % tile:
            raise NotStatedError(f"a tile of {tile} of {dim} in one of {around[dim]} leaves a remainder")
        if step.trip > 1:
            around[dim] = tile
            rounds[id(step.node)] = (operator.bounds[dim] - 1) // tile % step.trip + 1
    return rounds


def _levels(mapping: Mapping, operator: Operator, engine: Engine) -> dict[str, _Level]:
    """What stands at every level, in the machine's order."""
    sites = Sites.of(engine)
    owner = {axis: array for array, axes in sites.arrays.items() for axis in axes}
    by_level = {name: _Level() for name in sites.levels}
    for array, below in sites.below.items():
        by_level[below].arrays[array] = []
    depth = stored = 0
    for node, step in _steps(mapping, operator):
        if isinstance(node, Storage):
            at = sites.levels.index(node.level)
            level = by_level[node.level]
            if at < depth or level.loops or any(level.arrays.values()):
                raise NotStatedError(
                    f"{node.tensor} begins to live in {node.level} inside loops of that level"
                )
            level.stores.append(node.tensor)
            depth = stored = at
            continue
        if step is None:
            continue
        if isinstance(node, Temporal):
            host = stored if node.level is None else sites.levels.index(node.level)
            level = by_level[sites.levels[host]]
            if host < depth or any(level.arrays.values()):
                raise NotStatedError(f"a loop of {node.dim} of {sites.levels[host]} inside a lower level")
            _place(level.loops, step, f"the loops of {sites.levels[host]}")
            depth = host
        else:
            array = owner[node.axis]
            at = sites.levels.index(sites.below[array])
            if at < depth:
                raise NotStatedError(f"a loop of {node.dim} on {node.axis} inside {sites.levels[depth]}")
            depth = max(depth, at)
            _place_spatial(by_level[sites.below[array]], array, step)
    order = {tensor.name: index for index, tensor in enumerate(operator.tensors)}
    for level in by_level.values():
        level.stores.sort(key=order.__getitem__)
        for array, steps in level.arrays.items():
            axes = sites.arrays[array]
            steps.sort(key=lambda step_placed: axes.index(_axis(step_placed)))
    return by_level


def _steps(mapping: Mapping, operator: Operator) -> list[tuple[Node, LoopStep | None]]:
    """Every node, loops with their trips; ``None`` for a loop of a single iteration."""
    steps = iter(mapping.loops(operator))
    placed: list[tuple[Node, LoopStep | None]] = []
    for node in mapping.nodes:
        step = None if isinstance(node, Storage) else next(steps)
        placed.append((node, step if step is not None and step.trip > 1 else None))
    return placed


def _axis(step: LoopStep) -> str:
    assert isinstance(step.node, Spatial)
    return step.node.axis


def _place(loops: list[LoopStep], step: LoopStep, where: str) -> None:
    if any(other.node.dim == step.node.dim for other in loops):
        raise NotStatedError(f"a second loop of {step.node.dim} among {where}")
    loops.append(step)


def _place_spatial(level: _Level, array: str, step: LoopStep) -> None:
    """Add a loop of an array; arrays stand in the machine's order, which matters to a dimension on both."""
    inner = list(level.arrays)[list(level.arrays).index(array) + 1 :]
    if any(placed.node.dim == step.node.dim for other in inner for placed in level.arrays[other]):
        raise NotStatedError(f"{step.node.dim} is spread over {array} inside an array that lies below it")
    _place(level.arrays[array], step, f"those of the array {array}")
