"""What is known of groups of layers, and of the whole network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.result import Status
from tilewright.solvers.mapping.fused.lines import Line

Figures = tuple[Fraction | None, Fraction]
"""A value, as far as there is one, and its bound."""


@dataclass
class FusedAnswer:
    """The best fused mapping of a group, and what is proven of it.

    Parameters
    ----------
    tree, evaluation : ``None`` where no fused mapping was found
    value, bound : pJ; no fused mapping of the searched space takes less than the bound
    complete : whether nothing was left open
    close : whether the gap that is asked for was reached before
    reason : why there is no fused mapping, where there is none
    skeletons, opened, solves : what the search looked at
    """

    tree: Branch | None = None
    evaluation: FusedEvaluation | None = None
    value: Fraction | None = None
    bound: Fraction | None = None
    complete: bool = False
    close: bool = False
    reason: str = ""
    skeletons: int = 0
    opened: int = 0
    solves: int = 0


@dataclass(frozen=True)
class GroupAnswer:
    """What is known of one group, or of one layer alone.

    Parameters
    ----------
    group : the layers
    tree : the best mapping; ``None`` where none was found that takes less than its parts
    value, bound : pJ, or what else is minimised
    cycles : of the mapping
    reason : why it is not fused
    seconds : of its search
    skeletons, opened, solves : what the search looked at; 0 for a layer alone
    evaluation : of the tree, once that is asked for
    impossible : whether it is proven that no mapping exists
    """

    group: FusedGroup
    tree: Branch | None
    value: Fraction | None
    bound: Fraction
    reason: str = ""
    cycles: int = 0
    seconds: float = 0.0
    skeletons: int = 0
    opened: int = 0
    solves: int = 0
    evaluation: FusedEvaluation | None = None
    impossible: bool = False

    @property
    def is_fused(self) -> bool:
        return len(self.group.names) > 1

    @property
    def is_settled(self) -> bool:
        """Whether its search came to its end."""
        return "limit" not in self.reason


@dataclass(frozen=True)
class Unlinked:
    """Two layers that cannot be in one group, although one reads the other.

    Parameters
    ----------
    producer, reader, operand : who reads what, and as which of its tensors
    reason : why
    """

    producer: str
    reader: str
    operand: str
    reason: str


@dataclass(frozen=True)
class FusedStart:
    """A fused mapping to begin with, or a layer's own mapping.

    Parameters
    ----------
    source : the file, or what else it comes from
    group, tree : as stated there
    """

    source: str
    group: FusedGroup
    tree: Branch


@dataclass(frozen=True)
class Beside:
    """A legal fused mapping from outside the searched space.  No claim depends on it.

    Parameters
    ----------
    start : with the network's layers
    evaluation : on the machine
    reason : why it is outside
    """

    start: FusedStart
    evaluation: FusedEvaluation
    reason: str


@dataclass(frozen=True)
class FusionAnswer:
    """The best cover of a network by groups.

    Parameters
    ----------
    groups : in the network's order
    tried : all groups of two layers or more
    unlinked : pairs of layers of which one reads the other, with the reason why they cannot be fused
    value, bound : the objective's key of the whole; ``value`` is ``None`` where a layer has no mapping
    unfused : the same of the layers of each group one by one, in the groups' order
    alone : of all layers one by one
    apart : the layers of each group alone, in the groups' order
    lines : what proves the bound of a product of energy and cycles; empty for energy or cycles alone
    fewest : cycles of the whole at least, which bound it as well
    beside : mappings to begin with that lie outside the searched space
    refused : why others are of no use, a line each
    impossible : whether it is proven that every cover has a group without a mapping
    """

    groups: tuple[GroupAnswer, ...]
    tried: tuple[GroupAnswer, ...]
    unlinked: tuple[Unlinked, ...]
    value: Fraction | None
    bound: Fraction
    unfused: tuple[Figures, ...]
    alone: Figures
    apart: tuple[tuple[GroupAnswer, ...], ...]
    lines: tuple[Line, ...] = ()
    fewest: Fraction = Fraction(0)
    beside: tuple[Beside, ...] = ()
    refused: tuple[str, ...] = ()
    impossible: bool = False


def few_linked(most: int) -> str:
    """Why a group of so many layers, or of others than linked ones, is not searched."""
    return f"groups of 2 to {most} linked layers are searched"


def alike(group: FusedGroup) -> object:
    """What groups share that are the same but for the names of their layers."""
    number = {name: index for index, name in enumerate(group.names)}
    return (
        tuple(group.operators.values()),
        tuple(
            sorted(
                (number[r.reader], r.operand, number[r.producer], r.axes, r.offsets, r.rows, r.softmax)
                for r in group.readings
            )
        ),
        frozenset(number[name] for name in group.leaving),
        frozenset((number[name], row, name in group.softmaxes) for name, row in group.rows),
    )


def renamed(answer: GroupAnswer, group: FusedGroup) -> GroupAnswer:
    """The answer for another group that is the same but for names."""
    if answer.tree is None:
        return replace(answer, group=group, seconds=0.0)
    names = dict(zip(answer.group.names, group.names, strict=True))
    return replace(answer, group=group, tree=answer.tree.renamed(names), seconds=0.0)


def status_of(value: Fraction | None, bound: Fraction, *, stopped: bool) -> Status:
    """How a search with some value and bound ended."""
    if value is not None and value == bound:
        return Status.OPTIMAL
    if stopped:
        return Status.INTERRUPTED
    return Status.UNKNOWN if value is None else Status.FEASIBLE
