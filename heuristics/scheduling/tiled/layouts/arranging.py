"""From layouts to atoms, engines and rounds: layers in turn, each engine its share atom by atom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.coordinates import ACROSS, PART, Shape, shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.layouts.beside import followers
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout, Layouts, tiling_of
from tilewright.heuristics.scheduling.tiled.layouts.rings import ring_begins, ring_turns
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
    up at the end; where they share the window of a pool, they do so in turn, each some channels.  Layers that
    run beside others have these layers' turns, see `followers`.

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
    engines, steps, counts, tilings = [], [], [], []
    for unit, (layout, (tiling, group, number)) in enumerate(zip(layouts, cut, strict=True)):
        operator = problem.units[unit].layer.operator
        shape = shape_of(operator)
        turns = [int(numbers.max()) + 1 for numbers in number]
        k, h, w, part, strip = np.ix_(*number)
        parts, terms = layout.grid.groups[3], turns[PART] * turns[ACROSS]
        box, boxes = (h * turns[2] + w) * turns[0] + k, turns[0] * turns[1] * turns[2]
        placed = _by_tiling(layout.engines(problem.machine.width), shape)
        # parts of a window run along its rows and columns
        engine = placed[np.ix_(*group)].reshape(*box.shape[:3], -1)
        turn = box * terms + part * turns[ACROSS] + strip
        turn, box = turn.reshape(engine.shape), box[..., 0]
        chained = problem.partial_sums == "chain" and operator.is_mac
        if engine.shape[3] > 1 and not chained:
            last, after = engine[..., -1:], np.broadcast_to(box, (*engine.shape[:3], 1))
            if shape.is_window:  # engines that share it add up some boxes each
                sharing = placed.reshape(*placed.shape[:3], -1)[np.ix_(*group[:3])]
                last = np.take_along_axis(sharing, after % sharing.shape[3], axis=3)
                after = after // sharing.shape[3]
            turn = np.concatenate([turn, boxes * terms + after], axis=3)
            engine = np.concatenate([engine, last], axis=3)
            count = boxes * terms + int(after.max()) + 1
        else:
            if parts > 1:
                first = np.searchsorted(group[PART], ring_begins(box, boxes, parts).ravel())
                tiling = replace(tiling, begins=tuple((first % engine.shape[3]).tolist()))
                turn = ring_turns(box, group[PART], boxes, parts) * terms + part.ravel()
                places = np.argsort(tiling.slots_of_parts(), axis=1).reshape(engine.shape)
                turn, engine = (np.take_along_axis(of, places, axis=3) for of in (turn, engine))
            count = max(boxes, parts) * terms
        engines += [engine.ravel()] * problem.batch
        steps += [turn.ravel() + sample * count for sample in range(problem.batch)]
        counts.append(problem.batch * count)
        tilings.append(tiling)
    dag = problem.dag(tilings, limits)
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


def _by_tiling(engines: Int64s, shape: Shape) -> Int64s:
    """Engines of groups along the axes of `Shape.laid`, along those of a tiling."""
    missing = next(axis for axis in range(5) if axis not in shape.laid)
    return np.moveaxis(engines[..., None], range(5), (*shape.laid, missing))


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
