"""The energy of all storage patterns of a problem as a sum of terms, one for each level that is filled.

Many patterns have one part (:mod:`tilewright.formulation.mapping.parts.storage_parts`) in common; parts that
differ in the energies of what tensors come from bound each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.mapping.parts.storage_parts import StoragePart, compulsory, place_in
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.mapping.patterns.pattern_machines import Stores

EXACT = 4
"""Efforts, so to speak, that a part has been searched with whose cost is known; more than there are."""


@dataclass(frozen=True, slots=True)
class Term:
    """One part of the energy of every pattern, or of the energy and what cycles cost.

    Parameters
    ----------
    weight : place of what a cycle costs among the weights
    parts : different ones
    of_pattern : per pattern, the number of its part, shape (patterns,)
    kinds : equal where the same tensors come from levels with the same arrays between, shape (parts,)
    units : energies of the levels that tensors come from, pJ per element, shape (parts, ...)
    compulsory : what each costs whatever the tiles, pJ, shape (parts,)
    values : what each costs at least as far as is known, pJ, shape (parts,)
    asked : with how many of the efforts each has been searched, or `EXACT`, shape (parts,)
    """

    weight: int
    parts: list[StoragePart]
    of_pattern: Int64s
    kinds: Int64s
    units: Floats
    compulsory: Floats
    values: Floats
    asked: Int64s

    @property
    def level(self) -> int:
        """The level that is filled."""
        return self.parts[0].level


class PatternTerms:
    """The terms of all patterns of a problem.

    Parameters
    ----------
    problem : of the layer
    alternatives : per tensor, the levels that may store it, each outermost first; a pattern is a choice of
        each, the last tensor's running fastest
    """

    def __init__(self, problem: LayerProblem, alternatives: Sequence[Stores]) -> None:
        self._problem, self._alternatives = problem, alternatives
        self._shape = tuple(len(own) for own in alternatives)
        self._compulsory: dict[tuple[int, int, int, bool], float] = {}  # of tensors, in parts

    def term(self, level: int, place: int, weight: Fraction) -> Term:
        """The part at one level, for all patterns.

        Parameters
        ----------
        level : that is filled
        place, weight : what a cycle costs, pJ, and its place among the weights
        """
        problem = self._problem
        last = len(problem.engine.levels) - 1
        codes: Int64s = np.zeros(self._shape, dtype=np.int64)
        places: list[list[tuple[int | None, bool]]] = []
        for axis, alternatives in enumerate(self._alternatives):
            own = [place_in(stores, level, level == last) for stores in alternatives]
            places.append(sorted({*own}, key=lambda place: (place[0] is not None, place)))
            column = np.asarray([places[-1].index(place) for place in own], dtype=np.int64)
            sizes = [1] * len(self._shape)
            sizes[axis] = len(column)
            codes = codes * len(places[-1]) + column.reshape(sizes)
        different, of_pattern = np.unique(codes.ravel(), return_inverse=True)
        parts: list[StoragePart] = []
        for index in zip(*np.unravel_index(different, [len(own) for own in places]), strict=True):
            chosen = [own[int(place)] for own, place in zip(places, index, strict=True)]
            sources, stored = zip(*chosen, strict=True)
            parts.append(StoragePart(level, sources, stored))
        values = np.asarray([compulsory(problem, part, weight, self._compulsory) for part in parts])
        unused = [all(source is None for source in part.sources) for part in parts]
        asked: Int64s = np.where(unused, EXACT, 0).astype(np.int64)
        kinds, units = zip(*(self._traits(part) for part in parts), strict=True)
        numbers: Int64s = np.arange(len(parts))  # ports of dearer levels may be the faster ones
        if not weight:
            _, numbers = np.unique(np.asarray(kinds), axis=0, return_inverse=True)
        return Term(
            place, parts, of_pattern.ravel(), numbers.ravel(), np.asarray(units), values.copy(), values, asked
        )

    def _traits(self, part: StoragePart) -> tuple[list[int], list[float]]:
        """Whether each tensor is stored, from which levels between two arrays it comes, and unit energies."""
        engine = self._problem.engine
        arrays = [index for index, level in enumerate(engine.levels) if level.fanout is not None]
        runs: list[int] = [*part.stored]
        units: list[float] = []
        for tensor, source in zip(self._problem.operator.tensors, part.sources, strict=True):
            runs.append(-1 if source is None else bisect_left(arrays, source))
            level = engine.levels[source or 0]
            stored = source is not None
            units += [
                float(level.read_energy_of(tensor.role)) * stored,
                float(level.write_energy_of(tensor.role)) * stored,
            ]
        return runs, units
