"""One demand as data: read from a user's line or made by a dataflow, its names found, written in one way.

Equal demands written differently (white space, ``1e6`` for ``1000000``, ``==`` for ``=``, the sequence of
names, ``k`` for ``K`` where no other name is meant) have one canonical text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal

from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.foundation.units import exact
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Role

FLAG = "--constraint"
_RULE = re.compile(
    r"(?P<what>tile|trips|spatial)\((?P<name>\w+)(?:@(?P<site>[\w.-]+))?\)(?P<compare><=|>=|==|=|!=|%)"
    r"(?P<number>[0-9]+)"
)
_METRIC = re.compile(
    r"(?P<what>energy|cycles|edp|utilization)(?P<compare><=|>=)(?P<number>[0-9.eE+-]+(?:/[0-9]+)?)"
)
_ONLY = re.compile(r"spatial=(?P<names>\w+(?:,\w+)*)")
_ORDER = re.compile(r"stationary@(?P<site>[\w.-]+)=(?P<name>\w+)")
_INNERMOST = re.compile(r"innermost@(?P<site>[\w.-]+)=(?P<name>\w+)")
_SEQUENCE = re.compile(r"order@(?P<site>[\w.-]+)=(?P<names>\w+(?:,\w+)*)")
_STORE = re.compile(r"store\((?P<name>\w+)\)(?P<compare>==|=|!=)(?P<site>[\w.-]+)")
_STYLE = re.compile(r"(?P<role>input|weight|output)s?-stationary(?:@(?P<site>[\w.-]+))?", re.IGNORECASE)
_DIGITS = 15
_LONGEST = 1000
_EXPONENT = 100
_LISTED = 3

Kind = Literal["metric", "tile", "trips", "spatial", "only", "stationary", "innermost", "order", "store"]
_OF_TENSORS = ("stationary", "store")
Layers = Sequence[tuple[str, Operator]]


@dataclass(frozen=True, slots=True)
class Demand:
    """A line, read; or the same thing from somebody who writes none.

    Parameters
    ----------
    written : as the user wrote it; empty where nobody did
    names : the metric, the dimensions or the tensor that it speaks of
    site : the level or array axis
    number : what is compared with
    """

    written: str
    kind: Kind
    names: tuple[str, ...]
    site: str | None = None
    compare: str = ""
    number: Fraction = Fraction(0)

    @property
    def text(self) -> str:
        """The canonical text."""
        match self.kind:
            case "metric":
                return f"{self.names[0]}{self.compare}{exact(self.number)}"
            case "only":
                return f"spatial={','.join(self.names)}"
            case "stationary" | "innermost":
                return f"{self.kind}@{self.site}={self.names[0]}"
            case "order":
                return f"order@{self.site}={','.join(self.names)}"
            case "store":
                return f"store({self.names[0]}){self.compare}{self.site}"
        at = "" if self.site is None else f"@{self.site}"
        return f"{self.kind}({self.names[0]}{at}){self.compare}{self.number}"

    def error(self, message: str) -> InputError:
        """What is wrong with the line."""
        return InputError(FLAG, self.written or self.text, message)


def not_spread(dim: str, axis: str | None = None) -> Demand:
    """A dimension is not spread over the array, or not on one axis."""
    return Demand("", "spatial", (dim,), axis, "=", Fraction(1))


def no_loop(dim: str, level: str) -> Demand:
    """A dimension's loop at a level has one iteration."""
    return Demand("", "trips", (dim,), level, "=", Fraction(1))


def one_held(dim: str, level: str) -> Demand:
    """A level holds one iteration of a dimension at a time."""
    return Demand("", "tile", (dim,), level, "=", Fraction(1))


def stationary(tensor: str, level: str) -> Demand:
    """The loops of a level keep a tensor in place."""
    return Demand("", "stationary", (tensor,), level)


def read_demand(written: str) -> Demand:
    """A line as it stands; raises ``InputError`` for one that cannot be read."""
    line = "".join(written.split())
    if match := _METRIC.fullmatch(line):
        return _metric(written, match)
    if match := _ONLY.fullmatch(line):
        return Demand(written, "only", tuple(sorted({*match["names"].split(",")})))
    if match := _ORDER.fullmatch(line):
        return Demand(written, "stationary", (match["name"],), match["site"])
    if match := _INNERMOST.fullmatch(line):
        return Demand(written, "innermost", (match["name"],), match["site"])
    if match := _SEQUENCE.fullmatch(line):
        names = tuple(match["names"].split(","))
        demand = Demand(written, "order", names, match["site"])
        if len(set(names)) < len(names):
            raise demand.error("names a dimension twice")
        return demand
    if match := _STORE.fullmatch(line):
        compare = "=" if match["compare"] == "==" else match["compare"]
        return Demand(written, "store", (match["name"],), match["site"], compare)
    if match := _STYLE.fullmatch(line):
        return Demand(written, "stationary", (f"{match['role'].lower()}s",), match["site"])
    match = _RULE.fullmatch(line)
    if match is None:
        raise InputError(
            FLAG,
            None,
            f"cannot read {written[:80]!r}, expected such as cycles<=1e6, utilization>=0.5, tile(K@SPM)<=64, "
            "trips(C@DRAM)=1, spatial(K)=16, spatial=C,K, stationary@SPM=O, weight-stationary, "
            "innermost@SPM=C, order@DRAM=K,P,C, tile(K@SPM)%16, store(W)!=SPM or set=gemmini",
        )
    kinds: dict[str, Kind] = {"tile": "tile", "trips": "trips", "spatial": "spatial"}
    compare = "=" if match["compare"] == "==" else match["compare"]
    demand = Demand(written, kinds[match["what"]], (match["name"],), match["site"], compare)
    if compare == "%" and (demand.kind != "tile" or not int(match["number"])):
        raise demand.error("expected a tile's divisor of at least 1, as in tile(K@SPM)%16")
    if len(match["number"]) > _DIGITS:
        raise demand.error(f"expected a number of at most {_DIGITS} digits")
    return replace(demand, number=Fraction(int(match["number"])))


def _metric(written: str, match: re.Match[str]) -> Demand:
    demand = Demand(written, "metric", (match["what"],), None, match["compare"])
    is_lower_limit = match["what"] == "utilization"
    if (match["compare"] == ">=") != is_lower_limit:
        raise demand.error(f"{match['what']} takes {'>=' if is_lower_limit else '<='}")
    number, _, divisor = match["number"].partition("/")
    try:
        amount = Decimal(number)
    except InvalidOperation:
        raise demand.error(f"expected a number, got {match['number'][:40]!r}") from None
    # Before the number becomes a fraction: ``1e999999999`` would take the memory of the machine.
    if abs(amount.adjusted()) > _LONGEST or len(match["number"]) > _LONGEST:
        raise demand.error(f"expected a number from 1e-{_EXPONENT} to 1e{_EXPONENT}")
    if divisor and int(divisor) == 0:
        raise demand.error("expected a number, got a division by 0")
    limit = Fraction(amount) / int(divisor or 1)
    if limit > 10**_EXPONENT or 0 < limit < Fraction(1, 10**_EXPONENT):
        raise demand.error(f"expected a number from 1e-{_EXPONENT} to 1e{_EXPONENT}")
    if limit <= 0 or (is_lower_limit and limit > 1):
        raise demand.error("expected a positive number" + (" up to 1" if is_lower_limit else ""))
    return replace(demand, number=limit)


def placed(demand: Demand, engine: Engine) -> Demand:
    """The demand with its level or axis as the machine calls it; raises ``InputError`` for an unknown one."""
    if demand.kind in ("metric", "only") or (demand.kind == "spatial" and demand.site is None):
        return demand
    if demand.kind == "spatial":
        noun = "axis"
        known = [axis.name for level in engine.levels for axis in (level.fanout.axes if level.fanout else ())]
    else:
        noun, known = "level", [level.name for level in engine.levels]
    listed = f"expected one of {', '.join(known)}" if known else f"{engine.name} has none"
    # Without a level the loops that feed the innermost one are meant, as in ``weight-stationary``.
    if demand.kind == "stationary" and demand.site is None and len(known) > 1:
        return replace(demand, site=known[-2])
    if demand.site is None:
        raise demand.error(f"names no {noun}, {listed}: {demand.kind}({demand.names[0]}@{known[-1]})")
    site = _known_name(demand, demand.site, known)
    if site is None:
        raise demand.error(f"unknown {noun} {demand.site!r}{did_you_mean(demand.site, known)}, {listed}")
    return replace(demand, site=site)


def fitted(demand: Demand, operator: Operator) -> Demand | str:
    """The demand with its names as the operator calls them, or the first name that the operator lacks."""
    names = []
    for name in demand.names if demand.kind != "metric" else ():
        meaning = _meant(demand, name, operator)
        if meaning is None:
            return name
        names.append(meaning)
    return _renamed(demand, names)


def _renamed(demand: Demand, names: Sequence[str]) -> Demand:
    """The demand with other names, sorted where their sequence means nothing."""
    if not names:
        return demand
    distinct = tuple(dict.fromkeys(names))
    return replace(demand, names=distinct if demand.kind == "order" else tuple(sorted(distinct)))


def narrowed(demand: Demand, operator: Operator) -> list[Demand]:
    """What a demand means for an operator that lacks some of its names.

    A rule on a dimension or tensor that the operator lacks says nothing.  ``spatial=C,K`` still bars all
    other dimensions.
    """
    if demand.kind == "only":
        kept = [_known_name(demand, name, [*operator.bounds]) for name in demand.names]
        names = tuple(sorted({name for name in kept if name is not None}))
        if names:
            return [replace(demand, names=names)]
        # None of the names is left: nothing may be spread at all.
        return [replace(not_spread(dim), written=demand.written) for dim in operator.bounds]
    if demand.kind == "order":
        known_names = [_known_name(demand, name, [*operator.bounds]) for name in demand.names]
        kept_names = [name for name in known_names if name is not None]
        return [_renamed(demand, kept_names)] if kept_names else []
    fit = fitted(demand, operator)
    return [] if isinstance(fit, str) else [fit]


def unknown(demand: Demand, name: str, operators: Sequence[Operator]) -> InputError:
    """What to say of a name that none of these operators has."""
    known = [*dict.fromkeys(word for operator in operators for word in _vocabulary(demand, operator))]
    noun = "tensor" if demand.kind in _OF_TENSORS else "dimension"
    return demand.error(
        f"unknown {noun} {name!r}{did_you_mean(name, known)}, expected one of {', '.join(known)}"
    )


def shared(demand: Demand, layers: Layers) -> tuple[Demand, str | None]:
    """The demand as the layers call its names, and a note where some of them lack one.

    Raises
    ------
    InputError : for a name that none of the layers has
    """
    notes: list[str] = []
    names: list[str] = []
    for name in demand.names if demand.kind != "metric" else ():
        meanings = {title: _meant(demand, name, operator) for title, operator in layers}
        having = [meaning for meaning in meanings.values() if meaning is not None]
        if not having:
            raise unknown(demand, name, [operator for _, operator in layers])
        # A spelling that some layer has stays; otherwise the first layer's is taken for all.
        names.append(name if name in having or _is_role(demand, name) else having[0])
        lacking = [title for title, meaning in meanings.items() if meaning is None]
        if lacking:
            noun = "tensor" if demand.kind in _OF_TENSORS else "dimension"
            # Networks have hundreds of layers; a note names a few.
            listed = ", ".join(lacking[:_LISTED]) + (", …" if len(lacking) > _LISTED else "")
            count = f"{len(lacking)} of {len(meanings)} layers {'has' if len(lacking) == 1 else 'have'}"
            notes.append(f"{count} no {noun} {names[-1]} ({listed})")
    canonical = _renamed(demand, names)
    return canonical, f"constraint {canonical.text}: {'; '.join(notes)}" if notes else None


def _vocabulary(demand: Demand, operator: Operator) -> list[str]:
    if demand.kind in _OF_TENSORS:
        return [tensor.name for tensor in operator.tensors]
    return [*operator.bounds]


def _is_role(demand: Demand, name: str) -> bool:
    """Whether a demand on a tensor calls it by its role."""
    return demand.kind == "stationary" and name in {*map(str, Role)}


def _meant(demand: Demand, name: str, operator: Operator) -> str | None:
    """The operator's own name for what a demand speaks of; ``None`` where it has none, or more than one."""
    meaning = _known_name(demand, name, _vocabulary(demand, operator))
    if meaning is None and _is_role(demand, name):
        playing = [tensor.name for tensor in operator.tensors if tensor.role == name]
        return playing[0] if len(playing) == 1 else None
    return meaning


def _known_name(demand: Demand, name: str, known: Sequence[str]) -> str | None:
    """The known name that is meant: the same, or the only one that differs in case alone."""
    if name in known:
        return name
    fold: Callable[[str], str] = str.casefold
    alike = [candidate for candidate in dict.fromkeys(known) if fold(candidate) == fold(name)]
    if len(alike) > 1:
        raise demand.error(f"{name!r} may be {' or '.join(map(repr, alike))}")
    return alike[0] if alike else None
