"""The compiled loop of branch and bound: partial decisions split, bounded, pruned and put in order.

A *descent* searches below some nodes, the cheapest first, depth first.  What is open lies on a stack: *parts*
are nodes of one stage under the same choices, in a pool of nodes one after the other, the dearest first.
A step takes the cheapest nodes of the last part, its head, and expands them: for every combination of the
stage's choices each axis group in turn is split into its cells.  Children of one group fill a batch, which
is bounded where it is large, or where no group is left; what is complete joins the pool.

The loop returns after so many nodes (for limits and signals), where it needs a larger pool, and where
complete decisions are at hand.  All of its state is in arrays, so the next call goes on.  It serves every
cost model: bounds come from the interpreter of
:mod:`tilewright.solvers.mapping.compiled.bound_program_kernel`.
"""

from __future__ import annotations

from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.mapping.compiled.bound_program_kernel import Scratch, bounds
from tilewright.solvers.mapping.compiled.cuts import Cut, is_wanted
from tilewright.solvers.mapping.compiled.descent_images import comparable, without_turned
from tilewright.solvers.mapping.compiled.descent_order import (
    cheapest_last,
    keep_best,
    note_split,
    note_use,
    order_groups,
    order_nodes,
)
from tilewright.solvers.mapping.compiled.descent_state import (
    BEGIN,
    BOUNDED,
    CHILD,
    COMBINATION,
    COMBINATIONS,
    COUNT,
    CYCLES,
    DONE,
    ENERGY,
    FIRST,
    FULL,
    HAVE,
    HEAD,
    INEXACT,
    KEY,
    LEAVES,
    LEVEL,
    MOST,
    NEXT,
    NODE,
    PARTS,
    SPENT,
    STAGE,
    START,
    USED,
    Decisions,
    Stack,
)
from tilewright.solvers.mapping.compiled.opcodes import Program

_MANY = 256  # nodes that are bounded in the middle of a stage: fewer are cheaper to split than to bound twice
_GROWTH = 4  # of the heads of one part
_EXACT = float(EXACT_LIMIT)


@compiled(ieee=True)
def _choose(decisions: Decisions, stack: Stack, stage: int, combination: int) -> None:  # pragma: no cover
    """Make one combination of a stage's open choices, the last one's options changing fastest."""
    base, now, registers = stack.base, stack.now, decisions.registers
    for k in range(len(base)):
        now[k] = base[k]
    left = combination
    for place in range(decisions.selectors_at[stage + 1] - 1, decisions.selectors_at[stage] - 1, -1):
        selector = decisions.selectors[place]
        if base[selector] < 0:
            first = decisions.domains_at[selector]
            options = decisions.domains_at[selector + 1] - first
            now[selector] = decisions.domains[first + left % options]
            left = left // options
    for k in range(len(base)):
        if registers[k] >= 0:
            stack.selected[registers[k]] = now[k]


@compiled(ieee=True)
def _combinations(decisions: Decisions, base: Int64s, stage: int) -> int:  # pragma: no cover
    """How many combinations of a stage's open choices there are."""
    count = 1
    for place in range(decisions.selectors_at[stage], decisions.selectors_at[stage + 1]):
        selector = decisions.selectors[place]
        if base[selector] < 0:
            count *= decisions.domains_at[selector + 1] - decisions.domains_at[selector]
    return count


@compiled(ieee=True)
def _gather(
    cells: Int64s, known: Floats, to_cells: Int64s, to_known: Floats, indices: Int64s, count: int
) -> None:  # pragma: no cover
    """Copy the nodes at some places, with their bounds."""
    for group in range(cells.shape[0]):
        source, target = cells[group], to_cells[group]
        for j in range(count):
            target[j] = source[indices[j]]
    for row in range(3):
        bound, copied = known[row], to_known[row]
        for j in range(count):
            copied[j] = bound[indices[j]]


@compiled(ieee=True)
def _split(decisions: Decisions, stack: Stack, stage: int, level: int) -> int:  # pragma: no cover
    """Fill the next level with children of a level's nodes, from where it was left; how many these are."""
    room = stack.level_cells.shape[2]
    cells, known = stack.level_cells[level], stack.level_bounds[level]
    node, child, have = stack.progress[level, NODE], stack.progress[level, CHILD], stack.progress[level, HAVE]
    parents, size = stack.indices, 0
    if decisions.split_counts[stage] == 0:  # only choices are made
        while node < have and size < room:
            parents[size] = node
            node += 1
            size += 1
        _gather(cells, known, stack.level_cells[level + 1], stack.level_bounds[level + 1], parents, size)
    else:
        group = stack.order[level]
        edges = decisions.edges[decisions.edges_at[stage, group] :]
        own, column = cells[group], stack.level_cells[level + 1, group]
        own_cells = stack.indices[room:]
        after = comparable(decisions, stack, stage, level, decisions.after[group])
        before = comparable(decisions, stack, stage, level, decisions.before[group])
        while node < have and size < room:
            first, end = edges[own[node]], edges[own[node] + 1]
            if after >= 0:
                first = max(first, cells[after, node])
            if before >= 0:
                end = min(end, cells[before, node] + 1)
            first += child
            left = max(0, end - first)
            take = min(left, room - size)
            for j in range(take):
                parents[size + j] = node
                own_cells[size + j] = first + j
            size += take
            if take < left:
                child += take
            else:
                node += 1
                child = 0
        _gather(cells, known, stack.level_cells[level + 1], stack.level_bounds[level + 1], parents, size)
        for j in range(size):
            column[j] = own_cells[j]
    stack.progress[level, NODE] = node
    stack.progress[level, CHILD] = child
    return size


@compiled(ieee=True)
def _prune(
    program: Program, decisions: Decisions, stack: Stack, scratch: Scratch, cut: Cut, level: int, count: int
) -> int:  # pragma: no cover
    """Keep the nodes of a level that may be legal and wanted, with their bounds raised; -1 if inexact."""
    cells, known = stack.level_cells[level], stack.level_bounds[level]
    stage, split = stack.state[STAGE], decisions.split_counts[stack.state[STAGE]]
    for group in range(cells.shape[0]):
        stack.stages[group] = stage
    # Groups that are still to be split are where the stage before left them.
    for place in range(level, split):
        stack.stages[stack.order[place]] = stage - 1
    for group in range(cells.shape[0]):
        stack.bases[group] = decisions.offsets[group, stack.stages[group] + 1]
    legal = bounds(
        program=program,
        cells=cells,
        count=count,
        bases=stack.bases,
        stages=stack.stages,
        chosen=stack.selected,
        scratch=scratch,
    )
    size = 0
    for k in range(legal):
        j = scratch.kept[k]
        energy, cycles = known[ENERGY, j], known[CYCLES, j]
        # A parent's bound holds for its children, and may be the tighter one.
        if decisions.reads[ENERGY] > 0:
            energy = max(energy, scratch.values[0, k])
        if decisions.reads[CYCLES] > 0:
            cycles = max(cycles, scratch.values[decisions.reads[ENERGY], k])
        if cycles >= _EXACT:
            return -1
        key = 1.0
        for _ in range(decisions.powers[ENERGY]):
            key *= energy
        for _ in range(decisions.powers[CYCLES]):
            key *= cycles
        if is_wanted(cut, energy, cycles, key):
            known[ENERGY, size] = energy
            known[CYCLES, size] = cycles
            known[KEY, size] = key
            stack.indices[size] = j
            size += 1
    for group in range(cells.shape[0]):
        row = cells[group]
        for j in range(size):
            row[j] = row[stack.indices[j]]
    return size


@compiled(ieee=True)
def _add_part(stack: Stack, size: int) -> None:  # pragma: no cover
    """Keep what a combination of choices has left as a part, if anything is."""
    state, begin = stack.state, stack.state[START]
    count = state[USED] - begin
    if count > 0:
        order_nodes(stack, begin, count)
        part = state[PARTS]
        stack.parts[part, NEXT] = state[STAGE] + 1
        stack.parts[part, BEGIN] = begin
        stack.parts[part, COUNT] = count
        stack.parts[part, HEAD] = size
        for k in range(len(stack.now)):
            stack.choices[part, k] = stack.now[k]
        state[PARTS] = part + 1
        state[START] = state[USED]


@compiled(ieee=True)
def _begin(
    decisions: Decisions, stack: Stack, stage: int, count: int, learns: bool
) -> None:  # pragma: no cover
    """Begin to expand so many nodes at the first level, whose choices are the base."""
    order_groups(decisions, stack, stage, learns)
    state = stack.state
    state[STAGE] = stage
    state[COMBINATION] = 0
    state[COMBINATIONS] = _combinations(decisions, stack.base, stage)
    state[FIRST] = state[PARTS]
    state[START] = state[USED]
    state[LEVEL] = 0
    stack.progress[0, HAVE] = count
    stack.progress[0, NODE] = 0
    stack.progress[0, CHILD] = 0
    _choose(decisions, stack, stage, 0)


@compiled(ieee=True)
def _expand(
    program: Program,
    decisions: Decisions,
    stack: Stack,
    scratch: Scratch,
    cut: Cut,
    end: int,
    beam: int,
    size: int,
) -> int:  # pragma: no cover
    """Go on with the expansion at work until it is over or nodes bounded pass an end; why it returns.

    Parameters
    ----------
    beam : nodes that are kept of every batch that is bounded, the cheapest ones; 0 for all
    size : of the first head of what it makes
    """
    state, progress = stack.state, stack.progress
    stage, room = state[STAGE], stack.cells.shape[1]
    last = max(1, decisions.split_counts[stage])
    many = beam if beam > 0 else _MANY
    while True:
        level = state[LEVEL]
        if level == last:
            # Nodes of which every group is decided.
            count, used = progress[level, HAVE], state[USED]
            if used + count > room or state[PARTS] + 1 >= stack.parts.shape[0]:
                return FULL
            for group in range(stack.cells.shape[0]):
                stack.cells[group, used : used + count] = stack.level_cells[level, group, :count]
            for which in range(3):
                stack.bounds[which, used : used + count] = stack.level_bounds[level, which, :count]
            state[USED] = used + count
            state[LEVEL] = level - 1
        elif progress[level, NODE] == progress[level, HAVE]:
            state[LEVEL] = level - 1
            if level == 0:
                _add_part(stack, size)
                state[COMBINATION] += 1
                if state[COMBINATION] == state[COMBINATIONS]:
                    return DONE
                _choose(decisions, stack, stage, state[COMBINATION])
                state[LEVEL] = 0
                progress[0, NODE] = 0
                progress[0, CHILD] = 0
        else:
            split = progress[level, NODE]
            count = made = _split(decisions, stack, stage, level)
            if level + 1 == last and len(decisions.sided) > 0:
                count = made = without_turned(decisions, stack, level + 1, count)
            if level + 1 == last or count > many:
                state[BOUNDED] += count
                count = _prune(program, decisions, stack, scratch, cut, level + 1, count)
                if count < 0:
                    return INEXACT
                note_split(decisions, stack, stage, level, progress[level, NODE] - split, made, count)
                if beam > 0 and count > 0:
                    count = keep_best(stack, level + 1, count, beam)
            if count > 0:
                progress[level + 1, HAVE] = count
                progress[level + 1, NODE] = 0
                progress[level + 1, CHILD] = 0
                state[LEVEL] = level + 1
            if state[BOUNDED] >= end:
                return SPENT


@compiled(ieee=True)
def _take_head(decisions: Decisions, stack: Stack, cut: Cut) -> None:  # pragma: no cover
    """Begin to expand the cheapest nodes of the last part, those that are wanted still."""
    part = stack.state[PARTS] - 1
    entry = stack.parts[part]
    stage, begin, count = entry[NEXT], entry[BEGIN], entry[COUNT]
    head = min(entry[HEAD], count, stack.level_cells.shape[2])
    size = 0
    for k in range(head):
        j = begin + count - 1 - k
        energy, cycles, key = stack.bounds[ENERGY, j], stack.bounds[CYCLES, j], stack.bounds[KEY, j]
        if is_wanted(cut, energy, cycles, key):
            for group in range(stack.cells.shape[0]):
                stack.level_cells[0, group, size] = stack.cells[group, j]
            for which in range(3):
                stack.level_bounds[0, which, size] = stack.bounds[which, j]
            size += 1
    for k in range(len(stack.base)):
        stack.base[k] = stack.choices[part, k]
    entry[COUNT] = count - head
    entry[HEAD] = min(_GROWTH * entry[HEAD], MOST)
    if count == head:
        stack.state[PARTS] = part
    note_use(stack)
    if size > 0:
        _begin(decisions, stack, stage, size, True)


@compiled(ieee=True)
def _has_wanted(stack: Stack, cut: Cut) -> bool:  # pragma: no cover
    """Whether anything of the last part is wanted still; if not, it is dropped."""
    part = stack.state[PARTS] - 1
    begin = stack.parts[part, BEGIN]
    for j in range(begin + stack.parts[part, COUNT] - 1, begin - 1, -1):
        if is_wanted(cut, stack.bounds[ENERGY, j], stack.bounds[CYCLES, j], stack.bounds[KEY, j]):
            return True
    stack.state[PARTS] = part
    note_use(stack)
    return False


@compiled(ieee=True)
def descend(
    program: Program,
    decisions: Decisions,
    stack: Stack,
    scratch: Scratch,
    cut: Cut,
    nodes: int,
    size: int,
    beam: int,
) -> int:  # pragma: no cover
    """Search what is open, depth first, until nothing is or something strikes; returns why it ends.

    Parameters
    ----------
    program : bounds nodes
    cut : what is wanted
    nodes : that are bounded before it returns, and those of one batch more
    size : nodes of the first head of every part; 0 to expand the nodes at the first level alone, into parts
    beam : nodes that are kept of every batch, the cheapest ones; 0 for all
    """
    state, end = stack.state, stack.state[BOUNDED] + nodes
    stages = len(decisions.split_counts)
    if size == 0 and state[LEVEL] < 0:
        _begin(decisions, stack, state[STAGE], stack.progress[0, HAVE], False)
    while True:
        if state[LEVEL] >= 0:
            reason = _expand(program, decisions, stack, scratch, cut, end, beam, size)
            if reason != DONE or size == 0:
                return reason
            cheapest_last(stack)
        if state[PARTS] == 0:
            return DONE
        if stack.parts[state[PARTS] - 1, NEXT] == stages:
            if _has_wanted(stack, cut):
                return LEAVES
        else:
            _take_head(decisions, stack, cut)
