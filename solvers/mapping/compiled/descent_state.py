"""What the compiled loop of branch and bound reads and keeps: what stages decide, and what is open.

:mod:`tilewright.solvers.mapping.compiled.descent_kernel` says how they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.solvers.mapping.tables.staged_tables import StagedTable
from tilewright.solvers.mapping.tables.stages import Stage

DONE, SPENT, FULL, LEAVES, INEXACT = 0, 1, 2, 3, 4
"""Why the loop returns: nothing is open or the expansion is over, the nodes granted are bounded, the pool or
the list of parts is full, the last part is complete decisions, cycles are too many for exact floats."""

PARTS, USED, LEVEL, STAGE, COMBINATION, COMBINATIONS, FIRST, START, BOUNDED = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Entries of `Stack.state`: how many parts there are, nodes of the pool in use, the level at work (-1 where
no head is expanded), the stage that it decides, the combination of its choices at work and how many
there are, the first part that it has made, where the part begins that it is making, nodes bounded in all."""
_STATES = 9

NEXT, BEGIN, COUNT, HEAD = 0, 1, 2, 3
"""Columns of `Stack.parts`: the stage that is next to be decided, its place in the pool, how many nodes of it
are a head."""

HAVE, NODE, CHILD = 0, 1, 2
"""Columns of `Stack.progress`: nodes at a level, the one that is being split, its children made so far."""

ENERGY, CYCLES, KEY = 0, 1, 2
"""Rows of bounds."""

SPLIT, MADE, KEPT = 0, 1, 2
"""Columns of `Decisions.counts`: nodes of which a group was split, their children that were bounded then, and
those of them that were kept."""

MOST_ORDERED: Final = 6
"""Groups that a stage splits, of which all sets are told apart."""

MOST: Final = 4096
"""Nodes of a head at most."""


class Decisions(NamedTuple):
    """What every stage decides.

    Parameters
    ----------
    edges : first cells of the next stage in every cell, with an end marker, of all groups and stages
    edges_at : where those begin that lead to a stage, shape (stages, groups)
    offsets : where the bounds of the whole group (first) and of each stage's cells begin, shape (groups,
        stages + 1)
    splits : groups that a stage splits into cells, that of the fewest first, shape (stages, groups)
    split_counts : how many these are, shape (stages,)
    counts : what splitting each of these groups has come to so far, after any of the others were split,
        shape (stages, sets, groups, 3)
    turns : expansions of every stage so far, shape (stages,)
    selectors, selectors_at : the choices of each stage, and where they begin (with an end marker)
    domains, domains_at : options of every choice, and where they begin (with an end marker)
    registers : of each choice in the program, -1 where nothing reads it
    powers : of energy and cycles in the key
    reads : whether energy and cycles are among the program's roots, as 1
    after, before : for each group, another one that it may change places with, whose cells its own do not
        precede, or do not follow; -1 without one; shape (groups,)
    sided : stages that settle along which of two exchangeable axes cells are spread, shape (arrays,)
    sides : of their cells, as :func:`~tilewright.formulation.mapping.nests.exchange.sides` has them
    sides_at : where those of each group begin; the same less than -1 where the group does not say which of
        two images is left out; shape (arrays, groups)
    """

    edges: Int32s
    edges_at: Int64s
    offsets: Int64s
    splits: Int64s
    split_counts: Int64s
    counts: Int64s
    turns: Int64s
    selectors: Int64s
    selectors_at: Int64s
    domains: Int64s
    domains_at: Int64s
    registers: Int64s
    powers: Int64s
    reads: Int64s
    after: Int64s
    before: Int64s
    sided: Int64s
    sides: Int64s
    sides_at: Int64s

    def without_exchanged(self, pairs: Iterable[tuple[int, int]]) -> Decisions:
        """The same without what groups that change places make of others.

        Parameters
        ----------
        pairs : of groups with the same cells, the one that comes first in each
        """
        after, before = self.after.copy(), self.before.copy()
        for first, second in pairs:
            after[second], before[first] = first, second
        return self._replace(after=after, before=before)

    def without_turned(self, stage: int, sides: Sequence[Int64s], paired: Collection[int]) -> Decisions:
        """The same without what two axes of an array that change places make of others.

        Parameters
        ----------
        stage : that settles the sides
        sides : of each group, along which of both axes every cell of the stage is spread
        paired : groups that may change places, which tell no image from another
        """
        sizes = [len(own) for own in sides]
        starts = len(self.sides) + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        tells = [place not in paired for place in range(len(sides))]
        return self._replace(
            sided=np.append(self.sided, stage),
            sides_at=np.vstack([self.sides_at, np.where(tells, starts, -1 - starts)]).astype(np.int64),
            sides=np.concatenate([self.sides, *sides]),
        )


class Stack(NamedTuple):
    """What is open, and the state of the loop.

    Parameters
    ----------
    cells, bounds : of the pool's nodes, shape (groups, nodes) and (3, nodes)
    parts : shape (parts, 4)
    choices : of the parts, shape (parts, choices); -1 where one is open
    level_cells, level_bounds : nodes of the expansion, those whose first groups are split so far; the head
        first; shape (levels, groups, nodes) and (levels, 3, nodes)
    progress : at every level, shape (levels, 3)
    order : groups in the sequence in which the expansion splits them
    base, now : choices of the head, and of the combination at work
    selected : what the program reads of them
    bases, stages : where the cells of each group's stage begin in its tables, and these stages
    indices : scratch memory for places of nodes
    state : see above
    """

    cells: Int64s
    bounds: Floats
    parts: Int64s
    choices: Int64s
    level_cells: Int64s
    level_bounds: Floats
    progress: Int64s
    order: Int64s
    base: Int64s
    now: Int64s
    selected: Int64s
    bases: Int64s
    stages: Int64s
    indices: Int64s
    state: Int64s


def decisions_of(
    staged: Sequence[StagedTable],
    stages: Sequence[Stage],
    selectors: Sequence[Variable],
    registers: MappingABC[Variable, int],
    powers: tuple[int, int],
    reads: tuple[bool, bool],
) -> Decisions:
    """What the stages of some tables decide.

    Parameters
    ----------
    selectors : all choices, those of the stages among them
    registers : choices that the program reads, with their places there
    powers : of energy and cycles in the key
    reads : whether energy and cycles are among the program's roots
    """
    edges: list[Int32s] = []
    edges_at = np.zeros((len(stages), len(staged)), dtype=np.int64)
    splits = np.zeros((len(stages), len(staged)), dtype=np.int64)
    split_counts = np.zeros(len(stages), dtype=np.int64)
    begin = 0
    for number in range(len(stages)):
        split: list[int] = []
        for group, table in enumerate(staged):
            if table.splits(number):  # otherwise each cell has one child, which is of its number
                split.append(group)
                cells = np.array([0, len(table.starts[0])], dtype=np.int32)
                edges.append(table.children[number - 1] if number else cells)
                edges_at[number, group] = begin
                begin += len(edges[-1])
        # Groups with few children first, so that early pruning is cheap.
        split.sort(key=lambda group: len(staged[group].starts[number]))
        splits[number, : len(split)] = split
        split_counts[number] = len(split)
    place = {selector: number for number, selector in enumerate(selectors)}
    of_stages, stages_at = _laid(map(place.__getitem__, stage.selectors) for stage in stages)
    domains, domains_at = _laid(selector.domain for selector in selectors)
    return Decisions(
        edges=np.concatenate(edges) if edges else np.zeros(0, dtype=np.int32),
        edges_at=edges_at,
        offsets=np.array([table.offsets for table in staged], dtype=np.int64).reshape(
            len(staged), len(stages) + 1
        ),
        splits=splits,
        split_counts=split_counts,
        counts=np.zeros((len(stages), 1 << min(len(staged), MOST_ORDERED), len(staged), 3), dtype=np.int64),
        turns=np.zeros(len(stages), dtype=np.int64),
        selectors=of_stages,
        selectors_at=stages_at,
        domains=domains,
        domains_at=domains_at,
        registers=np.array([registers.get(selector, -1) for selector in selectors], dtype=np.int64),
        powers=np.array(powers, dtype=np.int64),
        reads=np.array(reads, dtype=np.int64),
        after=np.full(len(staged), -1, dtype=np.int64),
        before=np.full(len(staged), -1, dtype=np.int64),
        sided=np.zeros(0, dtype=np.int64),
        sides_at=np.zeros((0, len(staged)), dtype=np.int64),
        sides=np.zeros(0, dtype=np.int64),
    )


def _laid(rows: Iterable[Iterable[int]]) -> tuple[Int64s, Int64s]:
    """Some rows of numbers one after the other, and where each begins, with an end marker."""
    listed = [list(row) for row in rows]
    starts = np.zeros(len(listed) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in listed], out=starts[1:])
    return np.array(list(chain.from_iterable(listed)), dtype=np.int64), starts


def new_stack(decisions: Decisions, read: int, batch: int, pool: int = 1 << 14, parts: int = 256) -> Stack:
    """An empty stack.

    Parameters
    ----------
    read : choices that the program reads
    batch : nodes that are bounded together at most
    pool, parts : room for so many at first
    """
    groups, choices = decisions.edges_at.shape[1], len(decisions.registers)
    levels = max(1, groups) + 1
    state = np.zeros(_STATES, dtype=np.int64)
    state[LEVEL] = -1
    return Stack(
        cells=np.empty((groups, pool), dtype=np.int64),
        bounds=np.empty((3, pool)),
        parts=np.empty((parts, 4), dtype=np.int64),
        choices=np.empty((parts, choices), dtype=np.int64),
        level_cells=np.empty((levels, groups, batch), dtype=np.int64),
        level_bounds=np.empty((levels, 3, batch)),
        progress=np.zeros((levels, 3), dtype=np.int64),
        order=np.empty(groups, dtype=np.int64),
        base=np.full(choices, -1, dtype=np.int64),
        now=np.full(choices, -1, dtype=np.int64),
        selected=np.full(read, -1, dtype=np.int64),
        bases=np.empty(groups, dtype=np.int64),
        stages=np.empty(groups, dtype=np.int64),
        indices=np.empty(2 * batch, dtype=np.int64),
        state=state,
    )


def grown(stack: Stack, room: int) -> Stack:
    """The same with twice the room in the pool and for parts, and that for so many nodes more."""
    used, pool = stack.state[USED], 2 * stack.cells.shape[1] + room
    parts = 2 * len(stack.parts)
    larger = stack._replace(
        cells=np.empty((len(stack.cells), pool), dtype=np.int64),
        bounds=np.empty((3, pool)),
        parts=np.empty((parts, 4), dtype=np.int64),
        choices=np.empty((parts, stack.choices.shape[1]), dtype=np.int64),
    )
    larger.cells[:, :used], larger.bounds[:, :used] = stack.cells[:, :used], stack.bounds[:, :used]
    larger.parts[: len(stack.parts)], larger.choices[: len(stack.parts)] = stack.parts, stack.choices
    return larger
