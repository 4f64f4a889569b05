"""Timeloop's constraints on mappings: rules of the machine where they are such, else constraint lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.roles import CONVOLUTION, roles_of
from tilewright.report.exchange.mapping.timeloop_factors import Factor, read_factors, read_permutation
from tilewright.report.exchange.mapping.timeloop_sites import Sites, is_on_y
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

PEER = "timeloop"

TOPS: tuple[str, ...] = ("constraints", "architecture_constraints", "mapspace_constraints", "mapspace")
_OTHER = {
    "no_reuse": (Effect.COST, "tensors are reused all the same"),
    "rmw_first_update": (Effect.COST, "first updates are written without a read"),
    "no_coalesce": (Effect.COST, "updates are coalesced all the same"),
    "no_link_transfer": (Effect.NONE, "passing between neighbours is not supported"),
    "remainders": (Effect.SPACE, "the size of remainders is not restricted"),
    "default_max_factor": (Effect.SPACE, "factors that are not named have no limit"),
    "default_min_factor": (Effect.SPACE, "factors that are not named have no limit"),
    "proportion": (Effect.COST, "no level is overbooked"),
    "min": (Effect.SPACE, "a minimum use of a level cannot be required"),
}
_KNOWN = {"target", "type", "factors", "permutation", "split", "keep", "bypass", "keep_only", *_OTHER}
TYPES = ("temporal", "spatial", "dataspace", "datatype", "bypass", "max_overbooked_proportion", "utilization")
STORING = ("dataspace", "datatype", "bypass")


@dataclass(slots=True)
class Storing:
    """Which roles a level has to keep, and which pass it by; what is in neither may do either."""

    keep: set[Role] = field(default_factory=set)
    bypass: set[Role] = field(default_factory=set)


def recognises(data: object) -> bool:
    """Whether a file has constraints."""
    return isinstance(data, dict) and any(top in data for top in TOPS)


def read(top: Field, bundle: Bundle) -> None:
    """Collect the targets; they are stated when the machine that has them is known."""
    for name in TOPS:
        given = top.at(name)
        targets = given.at("constraints") if isinstance(given.value, dict) else given
        targets = targets if targets else given
        if isinstance(targets.value, dict):
            for key, extra in targets.fields().items():
                if key not in ("version", "targets", "constraints"):
                    extra.lose(bundle.ledger, Effect.SPACE, "is no constraint that is read")
            targets = targets.at("targets")
        for entry in targets.entries():
            entry.at("type").one_of(TYPES)
            entry.at("target").text("a level's name")
            bundle.targets.append(entry)


def read_storing(entry: Field, bundle: Bundle, storing: Storing) -> None:
    """What a level keeps and what passes it by."""
    for key, kept in (("keep", storing.keep), ("bypass", storing.bypass), ("keep_only", storing.keep)):
        for word in entry.at(key).words() if entry.at(key) else []:
            roles = roles_of(word, bundle.operator)
            if roles is None:
                raise entry.at(key).error(f"unknown data space {word!r}, expected one of the problem's")
            kept |= roles
    if entry.at("keep_only"):
        storing.bypass |= set(Role) - storing.keep
    both = storing.keep & storing.bypass
    if both:
        raise entry.error(f"{', '.join(sorted(both))} are to be kept and to be bypassed")
    _lose_others(entry, bundle)


def demand_all(bundle: Bundle, engine: Engine, targets: Sequence[Field]) -> None:
    """State constraints on the levels and arrays of a machine."""
    sites = Sites.of(engine)
    for entry in targets:
        kind = entry.at("type").value
        if kind in STORING:
            message = "the machine file states what a level stores: keeps and may_bypass"
            entry.lose(bundle.ledger, Effect.SPACE, message)
        elif kind == "spatial":
            array = sites.array(entry.at("target"))
            demand_spatial(entry, array, sites.arrays[array], bundle)
        elif kind == "temporal":
            demand_temporal(entry, sites.level(entry.at("target")), bundle)
        else:
            _lose_others(entry, bundle)


def demand_temporal(entry: Field, level: str, bundle: Bundle) -> None:
    """Factors of a level's loops; a permutation that leaves nothing open says nothing."""
    factors = _factors(entry, bundle)
    for factor in factors:
        bundle.demand(f"trips({factor.dim}@{level}){factor.compare}{factor.number}")
    _check_order(entry, factors, bundle, "the order of loops is searched, not fixed")
    _lose_others(entry, bundle)


def barred(entry: Field, array: str, axes: Sequence[str], bundle: Bundle) -> dict[str, set[str]]:
    """Per axis the dimensions that may not be spread along it: factors of 1, and the far side of a split.

    Parameters
    ----------
    entry : a spatial constraint in its file
    array : name of the component whose instances the array is
    axes : names of the array's axes
    bundle : knows the layer, and collects losses
    """
    unspread = {
        factor.dim for factor in _factors(entry, bundle) if factor.compare != ">=" and factor.number == 1
    }
    dims_barred = {axis: set(unspread) for axis in axes}
    split, order = entry.at("split"), read_permutation(entry.at("permutation"))
    if split and order:
        edge = split.whole("the number of loops on X", least=0)
        for axis in axes:
            dims_barred[axis] |= set(order[:edge] if is_on_y(array, axis) else order[edge:])
    return dims_barred


def demand_spatial(
    entry: Field, array: str, axes: Sequence[str], bundle: Bundle, *, unspread: bool = True
) -> None:
    """Factors of an array.

    Parameters
    ----------
    unspread : whether dimensions barred from an axis are reported as constraints, too, and not by the
        machine's ``carries``
    """
    without = barred(entry, array, axes, bundle)
    for factor in _factors(entry, bundle):
        if factor.number == 1 and factor.compare != ">=":
            continue
        ways = [axis for axis in axes if factor.dim not in without[axis]]
        if len(ways) == 1:
            bundle.demand(f"spatial({factor.dim}@{ways[0]}){factor.compare}{factor.number}")
        else:
            message = f"{factor.dim} may be spread over {' and '.join(axes)}, the factor restricts neither"
            entry.at("factors").lose(bundle.ledger, Effect.SPACE, message)
    if unspread:
        for axis, dims in without.items():
            for dim in sorted(dims):
                bundle.demand(f"spatial({dim}@{axis})=1")
    _lose_others(entry, bundle, () if unspread else ("no_reuse",))


def _factors(entry: Field, bundle: Bundle) -> list[Factor]:
    """The factors, 0 read as the whole dimension."""
    factors = []
    for factor in read_factors(entry.at("factors")):
        _check_dimension(entry.at("factors"), factor.dim, bundle)
        if factor.number == 0:
            if bundle.operator is None:
                raise entry.at("factors").error(
                    f"{factor.dim}=0 means the whole dimension, expected a problem that states its bound"
                )
            bound = bundle.operator.bounds[factor.dim]
            factor = Factor(factor.dim, factor.compare, bound, bound)
        if factor.last != factor.number:
            raise entry.at("factors").error(f"{factor.dim}={factor.number},{factor.last} is no constraint")
        factors.append(factor)
    return factors


def _check_dimension(place: Field, dim: str, bundle: Bundle) -> None:
    known = CONVOLUTION if bundle.operator is None else bundle.operator.bounds
    if dim not in known:
        raise place.error(f"unknown dimension {dim!r}, expected one of: {', '.join(known)}")


def _check_order(entry: Field, factors: Sequence[Factor], bundle: Bundle, message: str) -> None:
    place = entry.at("permutation")
    order = read_permutation(place)
    fixed = {factor.dim for factor in factors if factor.compare != ">=" and factor.number == 1}
    if bundle.operator is not None:
        fixed |= {dim for dim, bound in bundle.operator.bounds.items() if bound == 1}
    free = [dim for dim in order if dim not in fixed]
    if len(free) > 1:
        place.lose(bundle.ledger, Effect.SPACE, f"{message} ({', '.join(free)} have more than one iteration)")


def _lose_others(entry: Field, bundle: Bundle, stated: Sequence[str] = ()) -> None:
    for key, other in entry.fields().items():
        if key in stated:
            continue
        if key in _OTHER and other.value not in (None, [], 0, ""):
            effect, message = _OTHER[key]
            other.lose(bundle.ledger, effect, message)
        elif key not in _KNOWN:
            other.lose(bundle.ledger, Effect.SPACE, "is no constraint that is known here")
