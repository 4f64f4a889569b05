"""Atomic DAGs of a size that can be worked with.

Atoms become coarser where a network and its batch have too many, and smaller where one needs more than its
estimate says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, atom_count
from tilewright.foundation.arrays import Bools, Int64s, distinct
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.aligning import aligned
from tilewright.heuristics.scheduling.tiled.size_menus import SizeMenu, balanced_menu, fitting_menu

MOST_ATOMS = 150_000
"""Atoms of a DAG.  A search looks at many; at this size one takes about a second and less than 1 GB."""

ATOMS_PER_SECOND = 12_000
"""Atoms of a DAG for every second that is left: a first plan then takes less than half of the time, on a busy
machine too."""

PASS = 2
"""Times as many atoms allow a single plan in the time that is left."""

FASTEST = 100_000
"""Atoms for every second that is left beyond which no plan is begun: it would not be complete."""

MOST_PLANNED = 3_000_000
"""Atoms beyond which no plan is begun however long it may take: it needs more memory than machines have."""

SLACK = 1.1
"""Where time allows a single plan alone, sizes may have that many times the fewest atoms if they read fewer
blocks, which take most of that time."""

MOST_NEAR = 12
"""Such sizes of a layer at most: comparing them takes time, too."""

FEWEST = 10_000
"""Atoms that a DAG may always have."""

FAR = 2
"""An atom that needs more buffers than this is no matter of a short estimate."""

TIGHTER = 0.75
"""By how much the need of an atom must fall, step by step, where its estimate was short."""


def workable(
    problem: TiledProblem,
    sizes: Sequence[AtomSize],
    *,
    room: float = 0.5,
    engines: Sequence[int] | None = None,
    price: float = inf,
    most: int | None = None,
    limits: Limits | None = None,
) -> tuple[tuple[AtomSize, ...], AtomicDag]:
    """Sizes close to those given whose DAG has at most so many atoms, all of which fit their buffers.

    No layer gets more than a common number of atoms, the largest that keeps the sum; those beyond it take
    their best size (by the estimate of `balanced_menu`) with no more.

    Parameters
    ----------
    room, engines, price : as in `balanced_sizes`
    most : atoms; by default as many as the time that is left allows

    Returns
    -------
    sizes, dag : where even the coarsest sizes have more atoms, those

    Raises
    ------
    InputError : for a layer whose atoms fit no buffer whatever their size; for more atoms than `MOST_PLANNED`
    LimitReachedError : where limits strike on the way, or even the coarsest atoms are too many for them
    """
    if most is None:
        most = affordable(limits)
    counts = [problem.machine.engines] * len(problem.units) if engines is None else list(engines)
    remaining = None if limits is None else limits.remaining
    cap = _cap(problem, list(sizes), counts, room, price, most, remaining)
    chosen = cap.sizes
    wide: set[int] = set()
    limit = problem.machine.engine.buffer_bytes
    # Atoms of one sample each need the same in every sample.
    tried = 1 if all(size.samples == 1 for size in chosen) else problem.batch
    while True:
        dag = problem.unchecked_dag(chosen, limits, samples=tried)
        too_large = distinct(dag.unit[dag.needs > limit]).tolist()
        if not too_large:
            return tuple(chosen), dag if tried == problem.batch else problem.unchecked_dag(chosen, limits)
        needs = np.zeros(len(chosen), dtype=np.int64)
        np.maximum.at(needs, dag.unit, dag.needs)
        wide |= {unit for unit in too_large if needs[unit] > FAR * limit}
        for unit in too_large:
            menu = balanced_menu(problem, problem.units[unit], counts[unit], room=cap.room, price=price)
            plain = _plain(menu, chosen[unit])
            if plain != chosen[unit]:
                chosen[unit] = plain  # as good an estimate, and possibly not as short
                continue
            fitting = smaller(menu, chosen[unit], limit / int(needs[unit]), unit in wide)
            if not len(fitting):
                problem.dag(chosen)  # says what does not fit
            chosen[unit] = menu.size(int(fitting[_best(menu.atoms[fitting], cap.atoms)]))


def smaller(menu: SizeMenu, size: AtomSize, part: float, wide: bool) -> Int64s:
    """Entries that need less than a size does; if there are any, none of whose sides is longer.

    Parameters
    ----------
    menu : of the layer
    size : needs more than a buffer has
    part : of its need that a buffer has
    wide : it reads its operands whole for the pixels that it has, so that only fewer pixels need less

    Returns
    -------
    Their numbers; none where the size is the least
    """
    inside = (menu.sizes <= (size.rows, size.columns, size.inputs, size.outputs)).all(axis=1)
    less = _at_most(menu.need, _estimate(menu, size), part)
    preferred = [less & inside, less]
    if wide:
        fewer = _at_most(menu.sizes[:, 0] * menu.sizes[:, 1], size.rows * size.columns, part)
        preferred = [less & fewer & inside, less & fewer, fewer, less & inside]
    return np.flatnonzero(next((flags for flags in preferred if flags.any()), preferred[0]))


def _at_most(figures: Int64s, figure: float, part: float) -> Bools:
    """Which are at most a part of one of them, or the least where none is so small; all are below it."""
    kept: Bools = (figures <= max(min(part, TIGHTER) * figure, int(figures.min()))) & (figures < figure)
    return kept


def crowded(problem: TiledProblem, remaining: float) -> bool:
    """Whether even the coarsest atoms allow a single plan at most in so many seconds."""
    fewest = sum(int(fitting_menu(problem, unit, 1.0).atoms.min()) for unit in problem.units)
    return problem.batch * fewest > PASS * ATOMS_PER_SECOND * remaining


def affordable(limits: Limits | None) -> int:
    """Atoms of a DAG that can be worked with in the time that is left."""
    remaining = None if limits is None else limits.remaining
    if remaining is None:
        return MOST_ATOMS
    return max(FEWEST, min(MOST_ATOMS, int(ATOMS_PER_SECOND * remaining)))


@dataclass(frozen=True, slots=True)
class _Cap:
    """Sizes with a common number of atoms per layer at most.

    Parameters
    ----------
    sizes : per unit
    room : part of the buffer that atoms may need
    atoms : of a layer and a sample, at most where it can be
    """

    sizes: list[AtomSize]
    room: float
    atoms: float = inf


def _cap(
    problem: TiledProblem,
    sizes: list[AtomSize],
    engines: Sequence[int],
    room: float,
    price: float,
    most: int,
    remaining: float | None,
) -> _Cap:
    """Sizes with the largest common number of atoms per layer that keeps the sum.

    Of those that are equally good for a layer it takes one that lies well with the layers beside it.  Where
    even the coarsest in their part of the buffer are more than can be planned once, atoms may fill it: plans
    take longer then, as nothing arrives while an atom runs.

    Parameters
    ----------
    remaining : seconds that are left; ``None`` for no limit
    """
    batch = problem.batch
    given = [atom_count(unit, size, batch) for unit, size in zip(problem.units, sizes, strict=True)]
    if sum(given) <= most:
        return _Cap(sizes, room)

    def menus_in(part: float) -> list[SizeMenu]:
        return [
            balanced_menu(problem, unit, count, room=part, price=price)
            for unit, count in zip(problem.units, engines, strict=True)
        ]

    menus = menus_in(room)
    more = 1.0
    if remaining is not None and _fewest(menus, batch) > PASS * ATOMS_PER_SECOND * remaining:
        room, more = 1.0, SLACK
        menus = menus_in(room)
    _check_number(problem, menus, remaining)
    low, high = 0, max(given)
    while high - low > 1:
        middle = (low + high) // 2
        total = sum(
            count if count <= middle else batch * int(menu.atoms[_best(menu.atoms, middle // batch)])
            for count, menu in zip(given, menus, strict=True)
        )
        low, high = (middle, high) if total <= most else (low, middle)
    equal = [
        [size] if count <= low else _near(menu, _best(menu.atoms, low // batch), more)
        for size, count, menu in zip(sizes, given, menus, strict=True)
    ]
    capped = aligned(problem, [those[0] for those in equal], equal)
    return _Cap(list(capped), room, low // batch)


def _fewest(menus: Sequence[SizeMenu], batch: int) -> int:
    """Atoms of all layers in their coarsest sizes."""
    return batch * sum(int(menu.atoms.min()) for menu in menus)


def _check_number(problem: TiledProblem, menus: Sequence[SizeMenu], remaining: float | None) -> None:
    """Refuse what could not be planned: the message says which layer has how many atoms, and why so many."""
    total = _fewest(menus, problem.batch)
    if total <= min(MOST_PLANNED, inf if remaining is None else max(FEWEST, FASTEST * remaining)):
        return
    counts = [problem.batch * int(menu.atoms.min()) for menu in menus]
    worst = max(range(len(counts)), key=counts.__getitem__)
    buffer = problem.machine.engine.buffer_bytes
    many = (
        f"the coarsest atoms in a buffer of {buffer:,} bytes are {total:,}, {counts[worst]:,} of them of "
        f"{problem.units[worst].name}"
    )
    if total > MOST_PLANNED:
        expected = f"expected at most {MOST_PLANNED:,}: a part of the network, or larger buffers"
        raise InputError(problem.network.name, None, f"{many}, {expected}")
    raise LimitReachedError(f"{many}: too many for a plan in the time that was left")


def _best(atoms: Int64s, most: float) -> int:
    """The first entry with at most so many atoms; where none has as few, the one with the fewest."""
    few = np.flatnonzero(atoms <= most)
    return int(few[0]) if len(few) else int(atoms.argmin())


def _near(menu: SizeMenu, best: int, more: float) -> list[AtomSize]:
    """The sizes that are as good as one of them, or some of at most so many times its atoms; first it."""
    if more == 1:
        return menu.equal(best)
    few = np.flatnonzero(menu.atoms <= more * menu.atoms[best])
    few = few[np.argsort(menu.atoms[few], kind="stable")][:MOST_NEAR]
    return [menu.size(best), *(menu.size(int(at)) for at in few if at != best)]


def _plain(menu: SizeMenu, size: AtomSize) -> AtomSize:
    """The first of the sizes that are as good as a size; itself where no menu has it."""
    at = _place(menu, size)
    return size if at is None else menu.equal(at)[0]


def _estimate(menu: SizeMenu, size: AtomSize) -> float:
    """What an atom of a size is estimated to need; the largest estimate for a size that no menu has."""
    at = _place(menu, size)
    return float(menu.need.max() if at is None else menu.need[at])


def _place(menu: SizeMenu, size: AtomSize) -> int | None:
    """Where a menu has a size; ``None`` where it has not."""
    row = np.array([size.rows, size.columns, size.inputs, size.outputs])
    same = np.flatnonzero((menu.sizes == row).all(axis=1))
    return int(same[0]) if len(same) else None
