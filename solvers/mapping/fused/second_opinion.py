"""A second opinion on fused mappings: all groups, trees and mappings are listed, and models pick the best.

It shares nothing with the branch and bound but the evaluator and its expressions.  Small cases alone can be
listed; of others it says what is too much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.mapping.fused.widths import at_widths
from tilewright.formulation.objective import Objective
from tilewright.foundation.errors import InputError, TilewrightError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.answers import alike
from tilewright.solvers.mapping.fused.columns.fronts import Fronts
from tilewright.solvers.mapping.fused.columns.linked import Linked
from tilewright.solvers.mapping.fused.columns.space import Listed, TooLargeError
from tilewright.solvers.mapping.fused.lines import Line, least_key
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.solvers.second_opinion import Proof, Verdict

if TYPE_CHECKING:
    from tilewright.solvers.mapping.fused.columns.group_model import LeastGroup

SOLVER = "columns"
NETWORK = "network"
Names = tuple[str, ...]
Told = Callable[[str, Proof], None]


@dataclass(frozen=True)
class FusedClaim:
    """What a document claims of a network; keys are the objective's.

    Parameters
    ----------
    linked, most : the layers, and how many a group has at most
    listed : the space on the machine itself
    objective : of all layers together
    bound : of the whole
    groups : bounds of layers alone and of groups
    unfused : bounds of the same layers one by one
    lines, fewest : what the bound of a product of energy and cycles follows from
    infeasible : whether no mapping of the whole is said to exist
    """

    linked: Linked
    most: int
    listed: Listed
    objective: Objective
    bound: Fraction
    groups: Mapping[Names, Fraction]
    unfused: Mapping[Names, Fraction]
    lines: tuple[tuple[Fraction, Fraction], ...] = ()
    fewest: Fraction = Fraction(0)
    infeasible: bool = False


@dataclass(frozen=True)
class Better:
    """Fused mappings that take less than what is claimed to be possible.

    Parameters
    ----------
    group, tree : the layers, and how they run
    value : of the objective, or of the line that it refutes
    """

    group: FusedGroup
    tree: Branch
    value: Fraction


@dataclass
class FusedProofs:
    """Second opinions, each with what it is about, and mappings that refute claims."""

    proofs: list[tuple[str, Proof]] = field(default_factory=list)
    better: list[Better] = field(default_factory=list)


def prove_fused(claim: FusedClaim, limits: Limits, told: Told = lambda about, proof: None) -> FusedProofs:
    """List everything that a document speaks of, and compare its bounds with the best.

    Parameters
    ----------
    claim : the document's
    limits : of all second opinions together
    told : hears of each of them
    """
    opinions = FusedProofs()

    def note(about: str, proof: Proof) -> None:
        opinions.proofs.append((about, proof))
        told(about, proof)

    a, b = claim.objective.key_powers
    if a and b:
        _Products(claim, limits, note, opinions).all()
        return opinions
    _Opinion(claim, limits, note, opinions, Fraction(0) if a else None).whole(max(a, b))
    return opinions


class _Products:
    """Of products of energy and cycles: of every line, and of the groups' bounds by the same lines."""

    def __init__(self, claim: FusedClaim, limits: Limits, note: Told, opinions: FusedProofs) -> None:
        self.claim, self.limits, self.note, self.opinions = claim, limits, note, opinions
        self.priced: dict[Fraction | None, _Opinion] = {}

    def all(self) -> None:
        """Every claim."""
        for price, least in self.claim.lines:
            self._at(price).line(least, f"at {float(price):g} pJ a cycle")
        if self.claim.fewest:
            self._at(None).line(self.claim.fewest, "cycles")
        for names, claimed in self.claim.groups.items():
            if claimed:
                self.note(" + ".join(names), self._of_group(names, claimed))

    def _at(self, price: Fraction | None) -> _Opinion:
        self.priced[price] = _Opinion(self.claim, self.limits, self.note, self.opinions, price)
        return self.priced[price]

    def _of_group(self, names: Names, claimed: Fraction) -> Proof:
        """On the bound of one group: corners of its own lines, and the best of its mappings that are met."""
        reason = next((own.open[names] for own in self.priced.values() if names in own.open), "")
        if reason:
            return Proof(Verdict.UNDECIDED, SOLVER, reason)
        floors = {price: own.floor(names) for price, own in self.priced.items()}
        if None in floors.values():
            return Proof(Verdict.CONFIRMED, SOLVER, "finds no mapping")
        lines = [
            Line(price, least) for price, least in floors.items() if price is not None and least is not None
        ]
        objective = self.claim.objective
        if least_key(objective, lines, floors.get(None) or Fraction(0)) >= claimed:
            return Proof(Verdict.CONFIRMED, SOLVER, "proves a bound at least as high")
        for own in self.priced.values():
            if names in own.trees:
                group, tree = own.trees[names]
                evaluation = evaluate_fused(group, self.claim.listed.engine, self.claim.listed.model, tree)
                value = objective.key(evaluation.energy, evaluation.cycles)
                if value < claimed:
                    self.opinions.better.append(Better(group, tree, value))
                    text = f"found a mapping of value {float(objective.value(value))}"
                    return Proof(Verdict.REFUTED, SOLVER, text)
        return Proof(Verdict.UNDECIDED, SOLVER, "the document's lines prove less")


class _Opinion:
    """Of a network on a machine with one price of a cycle."""

    def __init__(
        self, claim: FusedClaim, limits: Limits, note: Told, opinions: FusedProofs, price: Fraction | None
    ) -> None:
        self.claim, self.limits, self.note, self.opinions = claim, limits, note, opinions
        self.listed = replace(claim.listed, engine=at_price(claim.listed.engine, price))
        self.fronts: list[Fronts] = []
        self.groups = sorted(claim.linked.groups(claim.most), key=len)
        self.known: dict[object, LeastGroup] = {}
        self.costs: dict[Names, Fraction] = {}
        self.trees: dict[Names, tuple[FusedGroup, Branch]] = {}
        self.open: dict[Names, str] = {}

    def whole(self, power: int) -> None:
        """On the bounds of layers, groups and the whole, which are powers of energy or of cycles."""
        for names in self.groups:
            before = self.limits.elapsed
            self._look(names, power)
            claimed = self.claim.groups.get(names)
            if claimed is not None:
                proof = self._of_group(names, claimed, power)
                self.note(" + ".join(names), replace(proof, seconds=self.limits.elapsed - before))
        for names, claimed in self.claim.unfused.items():
            alone = self._one_by_one(names)
            if len(names) > 1 and alone is not None and alone**power < claimed:
                text = f"found mappings of value {self._shown(alone**power)}"
                self.note(f"{' + '.join(names)}, unfused", Proof(Verdict.REFUTED, SOLVER, text))
        self._network(self.claim.bound, power, NETWORK)

    def line(self, least: Fraction, about: str) -> None:
        """On what the network takes at least at this price."""
        for names in self.groups:
            self._look(names, 1)
        self._network(least, 1, f"{NETWORK} {about}")

    def floor(self, names: Names) -> Fraction | None:
        """What a group takes at least, alone where it gains nothing; ``None`` where it has no mapping."""
        own, parts = self.costs.get(names), self._one_by_one(names)
        return parts if own is None else own

    def _one_by_one(self, names: Names) -> Fraction | None:
        """What some layers alone take together; ``None`` where one of them is open or has no mapping."""
        known = [self.costs[name,] for name in names if (name,) in self.costs]
        return sum(known, Fraction(0)) if len(known) == len(names) else None

    def _look(self, names: Names, power: int) -> None:
        """The least of a group, unless its layers alone take no more, and no more is claimed."""
        from tilewright.solvers.mapping.fused.columns.group_model import least_group  # loads CP-SAT

        try:
            group = self.claim.linked.group(names)
            plain, engine = at_widths(group, self.listed.engine)
        except InputError:
            return  # an operand is not what it reads, or as wide, so that the layers are no group
        if len(names) > 1 and any((name,) in self.open for name in names):
            self.open[names] = "a layer of it is undecided"
            return
        below = None if len(names) == 1 else self._one_by_one(names)
        if below is not None and self.claim.groups.get(names, Fraction(0)) > below**power:
            below = None
        key = alike(group), below
        try:
            if key not in self.known:
                fronts = self._fronts_on(engine)
                self.known[key] = least_group(plain, fronts.listed, fronts, below, self.limits)
            self._keep(names, group, self.known[key])
        except TooLargeError as error:
            self.open[names] = str(error)
        except LimitReachedError:
            self.open[names] = "interrupted" if self.limits.stop.is_set() else "time limit"

    def _fronts_on(self, engine: Engine) -> Fronts:
        """Of turns on the machine with some widths."""
        known = next((fronts for fronts in self.fronts if fronts.listed.engine == engine), None)
        if known is None:
            known = Fronts(replace(self.listed, engine=engine), self.limits)
            self.fronts.append(known)
        return known

    def _keep(self, names: Names, group: FusedGroup, least: LeastGroup) -> None:
        if least.value is None or least.tree is None:
            return
        self.costs[names] = least.value
        tree = least.tree.renamed(dict(zip(least.tree.layers(), names, strict=True)))
        self.trees[names] = group, tree
        evaluation = evaluate_fused(group, self.listed.engine, self.listed.model, tree)
        if evaluation.violations or evaluation.energy != least.value:
            raise TilewrightError(
                f"a fused mapping of {least.value} pJ is evaluated at {evaluation.energy} pJ"
            )

    def _of_group(self, names: Names, claimed: Fraction, power: int) -> Proof:
        """On the bound of one group."""
        if names in self.open:
            return Proof(Verdict.UNDECIDED, SOLVER, self.open[names])
        value = self.costs.get(names)
        if value is None or value**power >= claimed:
            return Proof(Verdict.CONFIRMED, SOLVER, "proves a bound at least as high")
        self.opinions.better.append(Better(*self.trees[names], value**power))
        return Proof(Verdict.REFUTED, SOLVER, f"found a mapping of value {self._shown(value**power)}")

    def _network(self, claimed: Fraction, power: int, about: str) -> None:
        """On the bound of the whole."""
        from tilewright.solvers.mapping.fused.columns.cover_model import least_cover  # loads CP-SAT

        before = self.limits.elapsed
        reason = next((f"{' + '.join(names)}: {text}" for names, text in self.open.items()), "")
        if reason:
            self.note(about, Proof(Verdict.UNDECIDED, SOLVER, reason))
            return
        try:
            cover = least_cover(self.claim.linked, self.costs, self.limits)
        except (TooLargeError, LimitReachedError) as error:
            self.note(about, Proof(Verdict.UNDECIDED, SOLVER, str(error)))
            return
        seconds = self.limits.elapsed - before
        if cover is None:
            text = "finds no mapping of the whole, fused or not"
            self.note(about, Proof(Verdict.CONFIRMED, SOLVER, text, seconds))
            return
        total, chosen = cover
        if total**power >= claimed and not self.claim.infeasible:
            text = "proves a bound at least as high"
            self.note(about, Proof(Verdict.CONFIRMED, SOLVER, text, seconds))
            return
        for names in chosen:
            if len(names) > 1 and all(own.group.names != [*names] for own in self.opinions.better):
                self.opinions.better.append(Better(*self.trees[names], self.costs[names] ** power))
        text = f"found mappings of value {self._shown(total**power)}"
        self.note(about, Proof(Verdict.REFUTED, SOLVER, text, seconds))

    def _shown(self, key: Fraction) -> float:
        return float(key if all(self.claim.objective.key_powers) else self.claim.objective.value(key))
