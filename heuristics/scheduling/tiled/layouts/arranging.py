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
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout, Layouts, tiling_of
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.stages import Stages


def arranged(
    problem: TiledProblem, layouts: Sequence[Layout], limits: Limits | None = None
) -> tuple[AtomicDag, Int32s, Int32s]:
    """Atoms, and an engine and a round for each.

    An engine makes all channels of some pixels before it goes on to the next ones, and finishes a sum before
    it begins another, so that results leave while others are computed.  Where engines share a sum, the next
    one adds its part when the one before has finished with a box of results.

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
    engines, steps, now = [], [], 0
    for layout, slots, (_, group, number) in zip(layouts, dag.slots.tolist(), cut, strict=True):
        if slots > len(number[3]):  # who makes the last part adds all of them up
            group = (*group[:3], np.append(group[3], group[3][-1]))
            number = (*number[:3], np.append(number[3], number[3].max() + 1))
        turns = [int(numbers.max()) + 1 for numbers in number]
        k, h, w, part = np.ix_(*number)
        parts = layout.grid.groups[3]
        # a chain's next engine makes its part of a box one turn later
        box = (h * turns[2] + w) * turns[0] + k + group[3]
        turn = box * turns[3] + part
        engine = np.broadcast_to(layout.grid.engines(problem.machine.width)[np.ix_(*group)], turn.shape)
        count = (turns[0] * turns[1] * turns[2] + parts - 1) * turns[3]
        for _ in range(problem.batch):
            engines.append(engine.ravel())
            steps.append(now + turn.ravel())
            now += count
    return dag, np.concatenate(engines).astype(np.int32), np.concatenate(steps).astype(np.int32)


def planned(stages: Stages, layouts: Layouts, source: str, like: AtomicPlan | None = None) -> Judged | None:
    """The plan of layouts, smoothed once, thoroughly where another plan is its start, and offered; ``None``
    where an atom fits no buffer.

    Parameters
    ----------
    stages : what makes plans
    layouts : of all layers
    source : what the trace calls the plan
    like : as of `Stages.placed`
    """
    try:
        dag, engine, step = arranged(stages.search.problem.problem, layouts, stages.search.limits)
    except InputError:
        return None
    return stages.placed(dag, step, engine, source, like, thorough=like is not None)
