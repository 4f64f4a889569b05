"""Descents side by side: every one in a thread of its own, for the compiled loop runs without a lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilewright.solvers.mapping.tree.descent import Descent
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.layout import Layout
from tilewright.solvers.mapping.tree.nodes import Nodes

if TYPE_CHECKING:  # loaded where a second thread begins
    from concurrent.futures import Future, ThreadPoolExecutor


class Team:
    """What was opened last, in as many parts as there are threads; one thread searches by itself.

    Between calls no block is searched, but for those that :meth:`go_on` has begun and :meth:`rest` awaits.

    Parameters
    ----------
    layout : of the search
    once : as for `Descent`
    """

    def __init__(self, layout: Layout, once: bool = False) -> None:
        self._layout, self._once = layout, once
        self._descents = [Descent(layout, once=once)]
        self._running: dict[Future[Nodes | None], tuple[Descent, float]] = {}  # with their bounds before
        self._threads: ThreadPoolExecutor | None = None

    def __bool__(self) -> bool:
        """Whether anything is open."""
        return any(self._descents)

    @property
    def bounded(self) -> int:
        """Nodes that have been bounded."""
        return sum(descent.bounded for descent in self._descents)

    @property
    def least(self) -> float:
        """Lower bound of the objective key of all that is open; infinite where nothing is."""
        running = dict(self._running.values())
        waiting = (descent for descent in self._descents if descent not in running)
        return min([*running.values(), *(descent.least for descent in waiting)])

    @property
    def least_energy(self) -> float:
        """Lower bound of the energy of all that is open, where nothing is searched; infinite without any."""
        return min(descent.least_energy for descent in self._descents)

    def has_idle(self, threads: int) -> bool:
        """Whether another part may be searched beside those that are open.

        Parameters
        ----------
        threads : that may search side by side
        """
        return sum(map(bool, self._descents)) < threads

    def begin(self, nodes: Nodes, size: int) -> None:
        """Open some nodes where nothing is open; the cheapest first.

        Parameters
        ----------
        size : of the first head
        """
        idle = next((descent for descent in self._descents if not descent), None)
        if idle is None:
            # Who leads the team bounds nodes with the first runner.
            self._descents[0].thread = 1
            idle = Descent(self._layout, thread=len(self._descents) + 1, once=self._once)
            self._descents.append(idle)
            self._layout.bound_program.provide(idle.thread)
        idle.begin(nodes, size)

    def go_on(self, goal: Goal, size: int, most: int | None = None) -> Iterator[Nodes]:
        """Search on for a block of nodes, or until one of several blocks is over; gives complete decisions.

        Parameters
        ----------
        size : nodes of the first head of every part
        most : nodes to bound at most, with those of one batch more
        """
        at_work = [descent for descent, _ in self._running.values()]
        waiting = [descent for descent in self._descents if descent and descent not in at_work]
        if len(waiting) + len(at_work) == 1 and waiting:
            leaves = waiting[0].go_on(goal, size, most)
            waiting[0].count()
            if leaves is not None:
                yield leaves
            return
        from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

        if self._threads is None:
            self._threads = ThreadPoolExecutor(thread_name_prefix="descent")
        for descent in waiting:
            least = descent.least
            self._running[self._threads.submit(descent.go_on, goal, size, most)] = descent, least
        yield from self._ended(wait(self._running, return_when=FIRST_COMPLETED).done)

    def rest(self) -> Iterator[Nodes]:
        """Await the blocks that are searched; gives complete decisions."""
        if self._threads is None:
            return
        from concurrent.futures import wait

        try:
            yield from self._ended(wait(self._running).done)
        finally:
            self._threads.shutdown()
            self._threads = None

    def _ended(self, done: set[Future[Nodes | None]]) -> Iterator[Nodes]:
        for future in done:
            descent, _ = self._running.pop(future)
            descent.count()
            leaves = future.result()
            if leaves is not None:
                yield leaves
