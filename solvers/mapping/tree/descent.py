"""Searches below some nodes by the compiled loop (:mod:`tilewright.solvers.mapping.compiled.descent_kernel`).

A descent keeps what is open there on its stack between calls.  Memory of stacks that are empty again serves
the next ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

from tilewright.solvers.mapping.compiled import descent_kernel
from tilewright.solvers.mapping.compiled import descent_state as at
from tilewright.solvers.mapping.compiled.program import Runner
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.layout import Layout
from tilewright.solvers.mapping.tree.nodes import Nodes

_WORK = 1 << 24  # instructions of a block of nodes, some tens of milliseconds at most
_LEAST_BLOCK = 1 << 12  # nodes
WIDE = 1 << 14  # nodes of a batch of which the best are kept
_KEPT_POOL = 1 << 18  # nodes: larger pools are not kept
_KEPT = 6  # stacks
_spare: dict[tuple[int, ...], at.Stack] = {}  # by groups, choices, those that are read, and batch


class Descent:
    """What is open below some nodes.

    Parameters
    ----------
    layout : of the search
    batch : nodes that are bounded together at most
    thread : number of the thread that searches
    once : whether of mappings that exchanged groups make of each other one is enough

    Attributes
    ----------
    bounded : nodes that have been bounded
    """

    def __init__(self, layout: Layout, batch: int = at.MOST, thread: int = 0, once: bool = False) -> None:
        self._layout, self._program = layout, layout.bound_program
        self._batch, self.thread = batch, thread
        self._decisions = layout.decisions_once if once else layout.decisions
        self._block = max(_LEAST_BLOCK, _WORK // (1 + self._program.length))
        self._shape = len(layout.staged), len(layout.selectors), len(self._program.selectors), batch
        self.bounded = 0
        self._counted = 0  # of these, the tally has so many
        self._stack: at.Stack | None = None
        self._nodes: Nodes | None = None  # whose choices all have in common that is open

    def __bool__(self) -> bool:
        """Whether anything is open."""
        return self._stack is not None

    @property
    def least(self) -> float:
        """Lower bound of the objective key of all that is open; infinite where nothing is."""
        return self._end(at.KEY)

    @property
    def least_energy(self) -> float:
        """Lower bound of the energy of all that is open; infinite where nothing is."""
        return self._end(at.ENERGY)

    def _end(self, row: int) -> float:
        if self._stack is None:
            return math.inf
        stack, state = self._stack, self._stack.state
        parts = stack.parts[: state[at.PARTS]].tolist()
        open_ = [stack.bounds[row, begin : begin + count] for _, begin, count, _ in parts]
        if state[at.LEVEL] >= 0:  # children cost no less than the head
            open_.append(stack.level_bounds[0, row, : stack.progress[0, at.HAVE]])
        return min((float(values.min()) for values in open_ if len(values)), default=math.inf)

    def count(self) -> None:
        """Add the nodes bounded since to the tally."""
        self._layout.tally.nodes += self.bounded - self._counted
        self._counted = self.bounded

    def begin(self, nodes: Nodes, size: int) -> None:
        """Open some nodes, where nothing is open; the cheapest first.

        Parameters
        ----------
        size : of the first head
        """
        stack = self._opened(nodes, len(nodes))
        count, state = len(nodes), stack.state
        stack.cells[:, :count] = nodes.cells[:, ::-1]
        stack.bounds[:, :count] = nodes.energy[::-1], nodes.cycles[::-1], nodes.keys[::-1]
        stack.parts[0] = nodes.stage + 1, 0, count, size
        stack.choices[0] = stack.base
        state[at.PARTS], state[at.USED] = 1, count

    def go_on(self, goal: Goal, size: int, most: int | None = None) -> Nodes | None:
        """Search on for one block of nodes; returns complete decisions, if there are any to be looked at.

        Parameters
        ----------
        size : nodes of the first head of every part
        most : nodes to bound at most, with those of one batch more

        Raises
        ------
        OverflowError : where cycles are too many for exact bounds
        """
        assert self._stack is not None
        assert self._nodes is not None
        runner = self._program.runner(self._nodes.chosen, self.thread)
        left = self._block if most is None else max(1, min(self._block, most))
        before = int(self._stack.state[at.BOUNDED])
        scratch, cut = runner.scratch(self._batch), goal.cut()
        reason: int = descent_kernel.descend(
            runner.program, self._decisions, self._stack, scratch, cut, left, size, 0
        )
        self.bounded += int(self._stack.state[at.BOUNDED]) - before
        leaves = self._popped() if reason == at.LEAVES else None
        if self._is_over(reason):
            self._close()
        return leaves

    def expanded(
        self, nodes: Nodes, goal: Goal, is_spent: Callable[[], bool], beam: int = 0
    ) -> list[Nodes] | None:
        """All children of some nodes that may be wanted, cheapest first, by choice; ``None`` if cut short.

        Parameters
        ----------
        is_spent : asked between blocks whether to stop
        beam : the best of them only, so many after every group; 0 for all
        """
        runner = self._program.runner(nodes.chosen)
        children: list[Nodes] = []
        for begin in range(0, len(nodes), self._batch):
            piece = nodes.between(begin, begin + self._batch)
            stack = self._opened(piece, 0)
            stack.level_cells[0, :, : len(piece)] = piece.cells
            stack.level_bounds[0, :, : len(piece)] = piece.energy, piece.cycles, piece.keys
            stack.progress[0, at.HAVE], stack.state[at.STAGE] = len(piece), piece.stage + 1
            while not self._is_over(self._expand(runner, goal, beam)):
                if is_spent():
                    self._close()
                    return None
            parts = [self._popped() for _ in range(stack.state[at.PARTS])]
            children += reversed(parts)
            self._close()
        return children

    def _expand(self, runner: Runner, goal: Goal, beam: int) -> int:
        """Expand what lies at the first level for one block of nodes; why that ended."""
        assert self._stack is not None
        before = int(self._stack.state[at.BOUNDED])
        scratch = runner.scratch(self._batch)
        reason: int = descent_kernel.descend(
            runner.program, self._decisions, self._stack, scratch, goal.cut(), self._block, 0, beam
        )
        self.bounded += int(self._stack.state[at.BOUNDED]) - before
        self.count()
        return reason

    def _is_over(self, reason: int) -> bool:
        """Whether nothing is left to do, after the stack has got the room that it may lack.

        Raises
        ------
        OverflowError : where cycles are too many for exact bounds
        """
        assert self._stack is not None
        if reason == at.INEXACT:
            raise OverflowError("counts beyond 2**53: the layer is too large for exact bounds")
        if reason == at.FULL:
            self._stack = at.grown(self._stack, self._batch)
        return reason == at.DONE

    def _popped(self) -> Nodes:
        """The last part, which is open no longer."""
        assert self._stack is not None
        assert self._nodes is not None
        stack, part = self._stack, int(self._stack.state[at.PARTS]) - 1
        stage, begin, count, _ = stack.parts[part].tolist()
        place = slice(begin, begin + count)
        options = zip(self._layout.selectors, stack.choices[part].tolist(), strict=True)
        chosen = {selector: option for selector, option in options if option >= 0}
        energy, cycles, keys = stack.bounds[:, place][:, ::-1].copy()
        cells = stack.cells[:, place][:, ::-1].copy()
        stack.state[at.PARTS] = part
        stack.state[at.USED] = (stack.parts[:part, at.BEGIN] + stack.parts[:part, at.COUNT]).max(initial=0)
        return Nodes(cells, stage - 1, {**self._nodes.chosen, **chosen}, energy, cycles, keys)

    def _opened(self, nodes: Nodes, count: int) -> at.Stack:
        """An empty stack with the choices of some nodes, and room for so many."""
        stack = _spare.pop(self._shape, None)
        if stack is None:
            stack = at.new_stack(self._decisions, self._shape[2], self._batch)
        if stack.cells.shape[1] < count:
            stack = at.grown(stack, count)
        stack.state[:], stack.selected[:] = 0, -1
        stack.state[at.LEVEL] = -1
        stack.base[:] = [nodes.chosen.get(selector, -1) for selector in self._layout.selectors]
        self._stack, self._nodes = stack, nodes
        return stack

    def _close(self) -> None:
        """Give the stack's memory to the next one."""
        stack, self._stack, self._nodes = self._stack, None, None
        if stack is not None and stack.cells.shape[1] <= _KEPT_POOL:
            _spare[self._shape] = stack
            if len(_spare) > _KEPT:
                with suppress(StopIteration, RuntimeError, KeyError):  # other threads keep stacks, too
                    del _spare[next(iter(_spare))]
