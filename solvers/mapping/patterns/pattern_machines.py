"""Machines of single storage patterns: levels that store nothing are left out, the others store what it says.

All mappings of these machines together are the even space (``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.mapping.demands.constraints import parse_constraints
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.formulation.mapping.nests.blocks import loop_hosts
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.result import Origin
from tilewright.formulation.search import Judgement
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel

Stores = tuple[tuple[int, ...], ...]
"""Per tensor, the levels that store it, outermost first: a storage pattern."""


def machine_of(engine: Engine, stored: Collection[int]) -> Engine:
    """The machine with some levels only; what others feed is fed by the next level outside.

    Parameters
    ----------
    stored : indices of these levels, the outermost one among them
    """
    levels: list[MemoryLevel] = []
    for index, level in enumerate(engine.levels):
        if index in stored:
            levels.append(level)
        elif level.fanout is not None:
            levels[-1] = replace(levels[-1], fanout=level.fanout)
    return replace(engine, levels=tuple(levels))


def machines_stand_alone(problem: LayerProblem) -> bool:
    """Whether machines without the levels that store nothing have the mappings of the whole at their cost."""
    operator, engine = problem.operator, problem.engine
    if not problem.idles:
        return False
    try:
        parse_constraints(problem.constraints.texts, operator, engine)
    except InputError:
        return False  # a cap that no line of a user's says cannot be stated on other machines
    roles = [tensor.role for tensor in operator.tensors]
    if len({*roles}) < len(roles) or loop_hosts(operator, engine) != (*range(len(engine.levels)),):
        return False
    feeds = False  # an array outside, with no level inside it that every machine has
    for level in engine.levels:
        # Left out together, levels may not leave two arrays in sequence.
        feeds = feeds and {*roles} & level.keeps <= level.may_bypass
        if level.fanout is not None:
            if feeds:
                return False
            feeds = True
    return True


def levels_of(stores: Stores) -> tuple[int, ...]:
    """Levels that store something, outermost first."""
    return tuple(sorted({level for own in stores for level in own}))


def stores_of(problem: LayerProblem, mapping: Mapping) -> Stores:
    """The storage pattern of a mapping."""
    places = {level.name: index for index, level in enumerate(problem.engine.levels)}
    stored = [(node.tensor, places[node.level]) for node in mapping.nodes if isinstance(node, Storage)]
    return tuple(
        tuple(sorted(level for name, level in stored if name == tensor.name))
        for tensor in problem.operator.tensors
    )


def storing(problem: LayerProblem, stores: Stores) -> Engine:
    """The machine of a problem, whose levels store what a pattern says."""
    engine = problem.engine
    levels = tuple(
        replace(
            level,
            keeps=frozenset(
                tensor.role
                for tensor, own in zip(problem.operator.tensors, stores, strict=True)
                if index in own
            ),
            may_bypass=frozenset(),
            counted_bits=engine.capacity_element_bits(level),
        )
        for index, level in enumerate(engine.levels)
    )
    return replace(engine, levels=levels)


def on_own_machine(problem: LayerProblem, stores: Stores, alike: Alike | None = None) -> LayerProblem:
    """The problem on the machine of a pattern: its levels store what that says, others are left out.

    Parameters
    ----------
    alike : of patterns that store something in the same levels
    """
    return problem.on(machine_of(storing(problem, stores), levels_of(stores)), alike)


class PatternSearch(LayerSearch):
    """A search of one pattern for what is better than all that the search of the whole knows.

    Parameters
    ----------
    whole : receives every mapping at once
    """

    def __init__(self, whole: LayerSearch, problem: LayerProblem) -> None:
        super().__init__(problem, whole.limits)
        self.count_with(whole)
        self._whole = whole

    @property
    def key(self) -> Fraction | None:
        """What a mapping must be better than."""
        return self._whole.key

    @property
    def done(self) -> bool:
        """Whether the search of the whole is over."""
        return self._whole.done

    def offer(self, answer: Mapping, source: str, origin: Origin = Origin.EXACT) -> Fraction | None:
        """Offer an answer to the search of the whole."""
        return self._whole.offer(answer, source, origin)

    def keep(
        self, judgement: Judgement[Mapping, Evaluation], source: str, origin: Origin = Origin.EXACT
    ) -> Fraction | None:
        """Offer an answer that a part has found to the search of the whole, whose machine is another one."""
        return self._whole.offer(judgement.answer, source, origin)

    def confirm(self, answer: Mapping, source: str, origin: Origin = Origin.EXACT) -> Fraction:
        """Offer an answer of this pattern to the search of the whole, whose space has it."""
        return self._whole.confirm(answer, source, origin)
