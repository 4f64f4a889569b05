"""The machine code of eviction: which copy leaves a buffer that is too full, and its way out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.copies_kernel import Copies, Lists, Stays, unlink
from tilewright.formulation.scheduling.tiled.plan_kernel import Graph
from tilewright.formulation.scheduling.tiled.ports_kernel import Ports, nearest_port
from tilewright.formulation.scheduling.tiled.uses_kernel import NONE
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.compiled import compiled

FAR = 1 << 30
"""A step beyond all others."""


class Rules(NamedTuple):
    """The rules of transfer routing and residency.

    Parameters
    ----------
    furthest : whether the victim is the copy whose next use is furthest, otherwise the one with the largest
        product of bytes and steps to its next use (algorithm 3)
    ahead : steps before its use in which data may arrive
    """

    furthest: bool
    ahead: int


@compiled(inline=True)
def victim_of(
    e: int,
    s: int,
    latest: int,
    mark: np.int64,
    copies: Copies,
    lists: Lists,
    stored: Int32s,
    graph: Graph,
    rules: Rules,
) -> Any:  # pragma: no cover
    """The copy on engine ``e`` to give up in logical step ``s``; -1 if none may go.

    None goes that is pinned with this ``mark``, and no result that was made after step ``latest``, is read
    again and is not written back yet.

    Parameters
    ----------
    e : the engine
    s : the logical step
    latest : the last step whose results can still be written back in time
    mark : of this attempt at the step
    copies, lists : what lies in the buffers
    stored : per block, the step in which it is written back, `FAR` for none
    graph : blocks and their bytes
    rules : by which copies are compared
    """
    block, home, coming, ready, pinned = (
        copies.block,
        copies.home,
        copies.coming,
        copies.ready,
        copies.pinned,
    )
    victim, worst = NONE, np.int64(-1)
    node = lists.first_on[e]
    while node != NONE:
        b = block[node]
        # a result that is read again and not in DRAM, too new to have been written back by now
        needed = home[node] and coming[node] != NONE and stored[b] == FAR and ready[node] > latest
        if pinned[node] != mark and not needed:
            wait = np.int64(FAR) if coming[node] == NONE else np.int64(coming[node] - s)
            badness = wait if rules.furthest else wait * graph.block_bytes[b]
            if badness > worst:
                victim, worst = node, badness
        node = lists.after[node]
    return victim


@compiled
def give_up(
    victim: int,
    earliest: int,
    last: int,
    move: Int32s,
    copies: Copies,
    lists: Lists,
    stays: Stays,
    stored: Int32s,
    held: Int64s,
    gone: Int32s,
    graph: Graph,
    ports: Ports,
) -> Any:  # pragma: no cover
    """Let a copy leave its engine after step ``last``; how many write-backs (0 or 1) that takes.

    A result that is read again is written back first, from step ``earliest`` on where it was made before.

    Parameters
    ----------
    move : row for the write-back
    """
    b, e, sent = copies.block[victim], copies.where[victim], 0
    if copies.home[victim] and copies.coming[victim] != NONE and stored[b] == FAR:
        move[0], move[1], move[2] = b, e, nearest_port(ports, e, graph.block_bytes[b], False)
        move[3], move[4] = max(copies.ready[victim] + 1, earliest), last
        stored[b] = last
        sent = 1
    held[e] -= graph.block_bytes[b]
    unlink(victim, max(last, copies.start[victim]), len(graph.cycles), copies, gone, lists, stays)
    return sent


@compiled
def make_way(
    e: int,
    s: int,
    need: int,
    buffer: int,
    latest: int,
    earliest: int,
    last: int,
    mark: np.int64,
    moves: Int32s,
    copies: Copies,
    lists: Lists,
    stays: Stays,
    stored: Int32s,
    held: Int64s,
    gone: Int32s,
    graph: Graph,
    rules: Rules,
    ports: Ports,
) -> Any:  # pragma: no cover
    """Let copies leave engine ``e`` until ``need`` more bytes fit, or none may leave any more;
    how many write-backs that takes.

    Parameters
    ----------
    latest, mark : see `victim_of`
    earliest, last : see `give_up`
    moves : rows for the write-backs
    """
    sent = 0
    while held[e] + need > buffer:
        victim = victim_of(
            e=e,
            s=s,
            latest=latest,
            mark=mark,
            copies=copies,
            lists=lists,
            stored=stored,
            graph=graph,
            rules=rules,
        )
        if victim == NONE:
            break
        sent += give_up(
            victim=victim,
            earliest=earliest,
            last=last,
            move=moves[sent],
            copies=copies,
            lists=lists,
            stays=stays,
            stored=stored,
            held=held,
            gone=gone,
            graph=graph,
            ports=ports,
        )
    return sent
