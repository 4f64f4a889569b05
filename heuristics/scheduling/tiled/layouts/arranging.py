"""From layouts to atoms, engines and rounds: layers in turn, each engine its share atom by atom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.arrays import Int32s
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.layouts.beside import followers
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout, Layouts, tiling_of
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.stages import Stages


def arranged(
    problem: TiledProblem,
    layouts: Sequence[Layout],
    limits: Limits | None = None,
    order: Sequence[int] | None = None,
) -> tuple[AtomicDag, Int32s, Int32s]:
    """Atoms, and an engine and a round for each.

    An engine makes all channels of some pixels before it goes on to the next ones, and finishes a sum before
    it begins another, so that results leave while others are computed.  Where engines share a sum, the next
    one adds its part when the one before has finished with a box of results, or the last one adds all parts
    up at the end.  Layers that run beside others have these layers' turns, see `followers`.

    Parameters
    ----------
    layouts : of all layers
    limits : within which that must be done
    order : in which layers run; by default the network's

    Raises
    ------
    InputError : where an atom fits no buffer
    LimitReachedError : where limits strike on the way
    """
    cut = [
        tiling_of(unit.layer.operator, layout, problem.batch)
        for unit, layout in zip(problem.units, layouts, strict=True)
    ]
    dag = problem.dag([tiling for tiling, _, _ in cut], limits)
    engines, steps, counts = [], [], []
    for unit, (layout, (_, group, number)) in enumerate(zip(layouts, cut, strict=True)):
        turns = [int(numbers.max()) + 1 for numbers in number]
        k, h, w, part = np.ix_(*number)
        parts = layout.grid.groups[3]
        box, boxes = (h * turns[2] + w) * turns[0] + k, turns[0] * turns[1] * turns[2]
        engine = layout.engines(problem.machine.width)[np.ix_(*group)]
        if dag.slots[unit] > len(group[3]):
            turn = np.concatenate([box * turns[3] + part, boxes * turns[3] + box], axis=3)
            engine = np.concatenate([engine, engine[..., -1:]], axis=3)
            count = boxes * (turns[3] + 1)
        else:
            # a chain's next engine makes its part of a box one turn later
            turn = (box + group[3]) * turns[3] + part
            count = (boxes + parts - 1) * turns[3]
        engines += [engine.ravel()] * problem.batch
        steps += [turn.ravel() + sample * count for sample in range(problem.batch)]
        counts.append(problem.batch * count)
    now, begins = 0, [0] * len(counts)
    units = range(len(counts)) if order is None else order
    beside = followers(problem, layouts, units)
    following = {unit for others in beside.values() for unit in others}
    for unit in units:
        if unit not in following:
            together = [unit, *beside.get(unit, ())]
            for each in together:
                begins[each] = now
            now += max(counts[each] for each in together)
    begun = np.repeat(np.array(begins), np.diff(dag.base))
    return dag, np.concatenate(engines).astype(np.int32), (begun + np.concatenate(steps)).astype(np.int32)


def planned(
    stages: Stages,
    layouts: Layouts,
    source: str,
    like: AtomicPlan | None = None,
    order: Sequence[int] | None = None,
) -> Judged | None:
    """The plan of layouts, smoothed once, thoroughly where another plan is its start, and offered; ``None``
    where an atom fits no buffer.

    Parameters
    ----------
    stages : what makes plans
    layouts : of all layers
    source : what the trace calls the plan
    like : as of `Stages.placed`
    order : as of `arranged`
    """
    try:
        dag, engine, step = arranged(stages.search.problem.problem, layouts, stages.search.limits, order)
    except InputError:
        return None
    return stages.placed(dag, step, engine, source, like, thorough=like is not None)
