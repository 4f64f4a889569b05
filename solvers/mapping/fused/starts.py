"""Fused mappings to begin with, from wherever they are: what of them is inside the searched space.

Those inside are answers like any other.  Legal ones from outside are kept apart, so that no claim depends on
them, and others are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, Leaf
from tilewright.formulation.mapping.mapping import Mapping as LayerMapping
from tilewright.formulation.mapping.search import LayerResult
from tilewright.foundation.errors import InputError
from tilewright.solvers.mapping.fused.answers import Beside, FusedStart, alike, few_linked
from tilewright.solvers.mapping.fused.covers.cover import Group
from tilewright.solvers.mapping.fused.covers.groups import GroupGraph
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.solvers.mapping.fused.trees.membership import FusedSpace
from tilewright.workloads.mapping.operator import Operator


@dataclass
class FusedStarts:
    """All starts of one search.

    Parameters
    ----------
    problem, graph : the question, and who waits for whom
    starts : as given
    inside, beside : by the group's place, and those from outside the space
    refused : why others are of no use, a line each
    alone : per operator, mappings of layers of its own
    """

    problem: FusionProblem
    graph: GroupGraph
    starts: Iterable[FusedStart]
    inside: dict[Group, list[Branch]] = field(default_factory=dict)
    beside: list[Beside] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    alone: dict[Operator, list[tuple[LayerMapping, FusedStart]]] = field(default_factory=dict)

    def sort(self, space: FusedSpace, classes: Sequence[Mapping[Group, FusedGroup]]) -> None:
        """Judge every start.

        Parameters
        ----------
        space : that is searched
        classes : groups that are searched, those together that are the same but for names
        """
        for start in self.starts:
            try:
                self._judge(space, classes, start)
            except InputError as error:
                self.refused.append(f"{start.source}: {' + '.join(start.group.names)}: {error}")
        self.starts = ()

    def _judge(
        self, space: FusedSpace, classes: Sequence[Mapping[Group, FusedGroup]], start: FusedStart
    ) -> None:
        model = cost_model(self.problem.model_name)
        # Names are known once the tree is read with the layers that it states itself.
        evaluate_fused(start.group, self.problem.engine, model, start.tree, "tree")
        own = self._matched(start, classes)
        evaluation = evaluate_fused(own.group, self.problem.engine, model, own.tree, "tree")
        if evaluation.violations:
            raise InputError("tree", None, evaluation.violations[0])
        leaf = own.tree.children[0]
        alone = len(own.tree.layers()) == 1 and not own.tree.nodes
        if alone and isinstance(leaf, Leaf) and not leaf.sized:
            self.alone.setdefault(own.group.operator(leaf.layer), []).append((leaf.mapping, own))
            return
        place = tuple(self.graph.number[name] for name in own.group.names)
        if any(place in same for same in classes):
            reason = space.outside(own.group, own.tree)
        else:
            reason = few_linked(self.problem.most)
        if reason is None:
            self.inside.setdefault(place, []).append(own.tree)
        else:
            self.beside.append(Beside(own, evaluation, reason))

    def _matched(self, start: FusedStart, classes: Sequence[Mapping[Group, FusedGroup]]) -> FusedStart:
        """A start over the network's own layers, of the first group of its class where it has one.

        Raises
        ------
        InputError : where no layers of the network are like these
        """
        for group in self._like(start.group, classes):
            if _same(group, start.group):
                names = dict(zip(start.group.names, group.names, strict=True))
                return replace(start, group=group, tree=start.tree.renamed(names))
        raise InputError("layers", None, "no layers of the network compute this and read each other so")

    def _like(self, group: FusedGroup, classes: Sequence[Mapping[Group, FusedGroup]]) -> Iterator[FusedGroup]:
        """Groups that may be the same: by their names, all that are searched, and layers alone."""
        names, first = group.names, [next(iter(same.values())) for same in classes]
        if set(names) <= set(self.problem.layers):
            place = tuple(sorted(self.graph.number[name] for name in names))
            yield from (own for own, same in zip(first, classes, strict=True) if place in same)
            if not self.graph.may_run_as_one(place):
                raise InputError("layers", None, "other layers stand between them, or their axes are unknown")
            yield self.problem.group(names)
        yield from first
        if len(names) == 1:
            yield from (self.problem.group([name]) for name in self.problem.layers)

    def note_alone(self, operator: Operator, result: LayerResult) -> None:
        """Keep a layer's own mapping that its search called one from outside the space."""
        outside = result.out_of_space
        for mapping, start in self.alone.get(operator, ()):
            known = any(beside.start == start for beside in self.beside)
            if outside is not None and outside.answer == mapping and not known:
                model = cost_model(self.problem.model_name)
                evaluation = evaluate_fused(start.group, self.problem.engine, model, start.tree)
                self.beside.append(Beside(start, evaluation, outside.reason))


def _same(group: FusedGroup, other: FusedGroup) -> bool:
    """Whether two groups compute the same, whatever of it is needed outside."""
    stated = (replace(own, leaving=frozenset()) for own in (group, other))
    first, second = (alike(own) for own in stated)
    return first == second
