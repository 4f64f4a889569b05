"""Random small instances: operators, engines of both cost models, objectives, constraints, mappings.

Sizes are such that every mapping of an instance can be enumerated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import assume
from hypothesis import strategies as st
from particulars import particular

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Dma, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.timing import Timing
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import (
    conv2d,
    depthwise_conv2d,
    elementwise,
    gemm,
    matmul,
    pool2d,
    transposed_conv2d,
)

KINDS = ("conv", "depthwise", "gemm", "matmul", "pool", "elementwise", "tconv", "nest")
NESTS = (
    "O[i,j] += A[i,k] * B[k,j] * C[j]",
    "O[i] += A[i+2*j] * B[j]",
    "O[i,j] += A[i+2*k,j] * B[k,i]",
    "O[i] += A[i,j,k] * B[i,j] * C[k]",
    "O[i,j] = A[i,j]",
)
LARGEST = 100_000


def sizes(count: int, most: int, values: Sequence[int] = (1, 2, 3, 4, 5, 6)) -> st.SearchStrategy[list[int]]:
    """``count`` sizes whose product is at most ``most``, in any sequence."""

    @st.composite
    def draw_sizes(draw: st.DrawFn) -> list[int]:
        left, drawn = most, []
        for _ in range(count):
            drawn.append(draw(st.sampled_from([value for value in values if value <= left])))
            left //= drawn[-1]
        return list(draw(st.permutations(drawn)))

    return draw_sizes()


@st.composite
def operators(draw: st.DrawFn, kinds: Sequence[str] = KINDS, most: int = 32) -> Operator:
    """A small operator of at most ``most`` iterations (per group, where it has groups)."""
    kind = draw(st.sampled_from(list(kinds)))
    stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    if kind == "conv":
        n, k, c, p, q, r, s = draw(sizes(7, most))
        groups = draw(st.sampled_from([1, 1, 2]))
        unused = draw(st.integers(0, stride - 1))  # input rows that a stride leaves unread
        return conv2d(
            n=n,
            k=k * groups,
            c=c * groups,
            h=(p - 1) * stride + r + unused,
            q=q,
            r=r,
            s=s,
            stride=(stride, 1),
            dilation=(1, dilation),
            groups=groups,
        )
    if kind == "depthwise":
        n, c, p, q, r, s, multiplier = draw(sizes(7, most))
        return depthwise_conv2d(n=n, c=max(c, 2), multiplier=multiplier, p=p, q=q, r=r, s=s, stride=stride)
    if kind == "gemm":
        m, n, k = draw(sizes(3, most, (1, 2, 3, 4, 6, 8, 12)))
        return gemm(m=m, n=n, k=k)
    if kind == "matmul":
        b, m, n, k = draw(sizes(4, most))
        return matmul(m=m, n=n, k=k, batch=max(b, 2))
    if kind == "pool":
        n, c, p, q, r, s = draw(sizes(6, most))
        return pool2d(n=n, c=c, p=p, q=q, r=r, s=s, stride=stride)
    if kind == "elementwise":
        shape = draw(sizes(3, most))
        other = [size if draw(st.booleans()) else 1 for size in shape]
        return elementwise(shape=shape, operands=[shape, other])
    if kind == "tconv":
        n, k, c, p, q, r, s = draw(sizes(7, most))
        return transposed_conv2d(n=n, k=k, c=c, p=p, q=q, r=r, s=s, stride=stride, dilation=dilation)
    line = draw(st.sampled_from(NESTS))
    names = sorted({char for char in line if char in "ijk"})
    likes = draw(st.permutations("KCP"))
    bounds = draw(sizes(len(names), most))
    return nest(
        line, bounds=dict(zip(names, bounds, strict=True)), like=dict(zip(names, likes, strict=False))
    )


def _energies(draw: st.DrawFn) -> Fraction:
    return Fraction(draw(st.integers(0, 40)), draw(st.sampled_from([1, 2, 5])))


def _array(draw: st.DrawFn, prefix: str, largest: int, sharing: bool = False) -> Fanout:
    axes = []
    for index in range(draw(st.sampled_from([1, 1, 2]))):
        carries = None
        if draw(st.integers(0, 3)) == 0:
            carries = frozenset(draw(st.lists(st.sampled_from("NGKCPQRS"), min_size=1, max_size=5)))
        axes.append(ArrayAxis(f"{prefix}{'xy'[index]}", draw(st.integers(1 + sharing, largest)), carries))
    flags = draw(st.tuples(st.booleans(), st.booleans()))
    array = Fanout(tuple(axes), Fraction(draw(st.integers(0, 3)), 2), *flags)
    if not sharing:
        return array
    return replace(array, sharing=True, hop_energy=Fraction(draw(st.integers(0, 6)), 4))


def _bandwidth(draw: st.DrawFn) -> Fraction | None:
    return draw(st.sampled_from([None, Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(4)]))


def leaking(draw: st.DrawFn, engine: Engine) -> Engine:
    """The engine, which every other time takes up to 7.5 pJ in a cycle whatever it does."""
    return replace(engine, leakage={"": Fraction(draw(st.integers(1, 30)), 4)} if draw(st.booleans()) else {})


@st.composite
def hierarchies(
    draw: st.DrawFn,
    levels: int | None = None,
    roomy: bool = False,
    sharing: bool = False,
    arrays: bool = False,
) -> Engine:
    """An engine of 2 to 4 levels for the ``hierarchy`` model; one in three sets roles and ports apart.

    Parameters
    ----------
    roomy : no capacity limits
    sharing : there is an array whose buffers share what they read
    arrays : every level but the last has an array, and all but the first may be bypassed more often
    """
    count = levels or draw(st.sampled_from([2, 3, 3, 4]))
    parts = []
    first = draw(st.integers(0, count - 2)) if sharing else None
    for index in range(count):
        keeps, bypass, partitions = frozenset(Role), frozenset[Role](), {}
        capacity = bank = None
        if index:
            if draw(st.integers(0, 3)) == 0:
                keeps = draw(st.frozensets(st.sampled_from(list(Role)), min_size=1))
            if arrays or draw(st.integers(0, 3)) == 0:
                bypass = keeps & draw(st.frozensets(st.sampled_from(list(Role)), max_size=2))
            if not roomy:
                capacity = draw(st.sampled_from([4, 8, 12, 16, 24, 32, 64, 1000]))
                bank = draw(st.sampled_from([None, None, None, 2, 4]))
                if draw(st.integers(0, 3)) == 0:
                    role = draw(st.sampled_from(sorted(keeps)))
                    partitions = {role: draw(st.sampled_from([2, 4, 8, 16]))}
        fanout = None
        if index == first:
            fanout = _array(draw, f"{index}", 4, sharing=True)
        elif index < count - 1 and (arrays or draw(st.booleans())):
            fanout = _array(draw, f"{index}", 4, sharing=sharing and draw(st.booleans()))
        parts.append(
            MemoryLevel(
                f"L{index}",
                capacity,
                _energies(draw),
                _energies(draw),
                partitions,
                bank,
                _bandwidth(draw),
                _bandwidth(draw),
                double_buffered=index > 0 and draw(st.booleans()),
                keeps=keeps,
                may_bypass=bypass,
                sliding_window=draw(st.booleans()),
                fanout=fanout,
                timing=Timing(drained=index > 0 and draw(st.booleans())),
            )
        )
    engine = Engine("random", "hierarchy", 16, _energies(draw), Fraction(500), tuple(parts))
    if draw(st.integers(0, 2)):
        return engine
    return particular(engine, lambda options: draw(st.sampled_from(options)))


@st.composite
def dmazerunners(draw: st.DrawFn, roomy: bool = False) -> Engine:
    """An engine for the ``dmazerunner`` model."""
    spm, rf = draw(st.sampled_from([16, 32, 48, 64, 1000])), draw(st.sampled_from([3, 4, 8, 12, 100]))
    energy = [_energies(draw) for _ in range(3)]
    array = _array(draw, "", 6)
    levels = (
        MemoryLevel("DRAM", None, energy[0], energy[0]),
        MemoryLevel(
            "SPM",
            None if roomy else spm,
            energy[1],
            energy[1],
            bank=draw(st.sampled_from([None, 4, 8])),
            double_buffered=True,
            fanout=Fanout(array.axes, array.energy),
        ),
        MemoryLevel("RF", None if roomy else rf, energy[2], energy[2]),
    )
    dma = Dma(
        Fraction(draw(st.integers(0, 40))),
        Fraction(draw(st.integers(0, 24)), 100),
        draw(st.sampled_from([Fraction(1), Fraction(5, 32)])),
    )
    return Engine("random", "dmazerunner", 16, _energies(draw), Fraction(500), levels, dma)


def engines(model: str, sharing: bool = False) -> st.SearchStrategy[Engine]:
    """An engine of either cost model; one of the ``hierarchy`` model may have buffers that share."""
    return hierarchies(sharing=sharing) if model == "hierarchy" else dmazerunners()


def axis_names(engine: Engine) -> list[str]:
    """Names of all array axes."""
    return [axis.name for level in engine.levels if level.fanout for axis in level.fanout.axes]


@st.composite
def tile_rules(draw: st.DrawFn, operator: Operator, engine: Engine) -> str:
    """A constraint on tile sizes or trip counts."""
    dim = draw(st.sampled_from(list(operator.bounds)))
    level = draw(st.sampled_from([level.name for level in engine.levels]))
    compare = draw(st.sampled_from(["<=", ">=", "=", "==", "!="]))
    number = draw(st.sampled_from([1, 1, 2, 3, 4]))
    axes = axis_names(engine)
    sites = [f"tile({dim}@{level})", f"trips({dim}@{level})", f"spatial({dim})"]
    sites += [f"spatial({dim}@{axis})" for axis in axes]
    only = "spatial=" + ",".join(
        draw(st.lists(st.sampled_from(list(operator.bounds)), min_size=1, max_size=3))
    )
    return draw(st.sampled_from([*(f"{site}{compare}{number}" for site in sites), only]))


def order_rules(operator: Operator, engine: Engine) -> st.SearchStrategy[str]:
    """A constraint on the tensor that a level's loops keep in place."""
    levels = st.sampled_from([level.name for level in engine.levels[:-1]])
    tensors = st.sampled_from([tensor.name for tensor in operator.tensors])
    return st.builds("stationary@{}={}".format, levels, tensors)


@st.composite
def metric_caps(draw: st.DrawFn, operator: Operator, engine: Engine) -> str:
    """A cap on a metric that some mappings meet and others may not."""
    least = -(-operator.iterations // engine.instances)
    cycles = least * draw(st.integers(1, 12))
    energy = operator.iterations * draw(st.integers(10, 400))
    floor = Fraction(1, draw(st.integers(1, 8)))
    rules = [
        f"cycles<={cycles}",
        f"energy<={energy}",
        f"edp<={energy * cycles}",
        f"utilization>={float(floor)}",
    ]
    return draw(st.sampled_from(rules))


SPACES = (("dmazerunner", "perfect"), ("hierarchy", "perfect"), ("hierarchy", "imperfect"))
"""Every cost model with the factors that it counts."""

OBJECTIVES = ("energy", "cycles", "edp", "ed2p", "E^0.5*D")


@dataclass(frozen=True)
class Instance:
    """What a problem is made of; prints as its parts, so that a failure can be replayed."""

    operator: Operator
    engine: Engine
    objective: str
    constraints: tuple[str, ...] = ()
    factors: str | None = None

    def problem(self) -> LayerProblem:
        """The problem, stated anew."""
        return layer_problem(
            self.operator,
            self.engine,
            parse_objective(self.objective),
            constraints=self.constraints,
            factors=self.factors or "perfect",
        )


@st.composite
def instances(
    draw: st.DrawFn,
    model: str,
    most: int = 32,
    largest: int = LARGEST,
    constrained: bool = False,
    objectives: Sequence[str] = OBJECTIVES,
    factors: str | None = None,
    sharing: bool = False,
) -> Instance:
    """A problem of at most ``largest`` combinations; ``sharing`` as in :func:`hierarchies`."""
    operator, engine = draw(operators(most=most)), draw(engines(model, sharing))
    constraints: list[str] = []
    if constrained:
        kinds = [tile_rules(operator, engine), metric_caps(operator, engine)]
        constraints = draw(st.lists(st.one_of(*kinds), max_size=3))
    objective = draw(st.sampled_from(list(objectives)))
    instance = Instance(operator, engine, objective, tuple(constraints), factors)
    try:
        problem = instance.problem()
    except InputError:  # a nest outside the cost model's scope, or an order that does not exist
        assume(False)
    assume(problem.space.size <= largest)
    return instance


def _split(draw: st.DrawFn, size: int, parts: int) -> list[int]:
    """Trip counts of ``parts`` loops whose product is ``size``."""
    trips = []
    for _ in range(parts - 1):
        trips.append(draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0])))
        size //= trips[-1]
    return list(draw(st.permutations([*trips, size])))


def _tiles(draw: st.DrawFn, bound: int, parts: int, perfect: bool) -> list[int]:
    """Tile sizes inside each of ``parts`` loops."""
    if perfect:
        tiles = []
        for trips in _split(draw, bound, parts):
            bound //= trips
            tiles.append(bound)
        return tiles
    tiles = draw(st.lists(st.integers(1, bound), min_size=parts - 1, max_size=parts - 1))
    return [*sorted(tiles, reverse=True), 1]


@st.composite
def mappings(
    draw: st.DrawFn, operator: Operator, engine: Engine, uneven: bool = False, perfect: bool = True
) -> Mapping:
    """A random mapping, which may break capacity and array limits.

    Parameters
    ----------
    uneven : whether tensors may begin to live anywhere among the loops of their level, dimensions may have
        several loops in one level, and optional stores may be left out
    perfect : whether tile sizes divide each other
    """
    likes = {dimension.name: dimension.like for dimension in operator.dimensions}
    sites: list[tuple[int, ArrayAxis | None]] = []
    for index, level in enumerate(engine.levels):
        sites.append((index, None))
        if uneven and draw(st.booleans()):
            sites.append((index, None))
        sites += [(index, axis) for axis in (level.fanout.axes if level.fanout else ())]
    inner: list[dict[str, int]] = [{} for _ in sites]
    for dim, bound in operator.bounds.items():
        allowed = [
            place
            for place, (_, axis) in enumerate(sites)
            if axis is None or axis.carries is None or likes[dim] in axis.carries
        ]
        for place, size in zip(allowed, _tiles(draw, bound, len(allowed), perfect), strict=True):
            inner[place][dim] = size
    tile = dict(operator.bounds)
    nodes: list[Node] = []
    segment: list[Node] = []
    for place, (index, axis) in enumerate(sites):
        loops = [dim for dim, size in inner[place].items() if size < tile[dim]]
        for dim in draw(st.permutations(loops)):
            tile[dim] = inner[place][dim]
            segment.append(Temporal(dim, tile[dim]) if axis is None else Spatial(dim, tile[dim], axis.name))
        if axis is None and (place + 1 == len(sites) or sites[place + 1] != (index, None)):
            nodes += _with_stores(draw, operator, engine, index, segment, uneven)
            segment = []
        elif axis is not None:
            nodes += segment
            segment = []
    return Mapping(tuple(nodes))


def _with_stores(
    draw: st.DrawFn, operator: Operator, engine: Engine, index: int, loops: list[Node], uneven: bool
) -> list[Node]:
    level = engine.levels[index]
    at: list[list[Node]] = [[] for _ in range(len(loops) + 1)]
    for tensor in operator.tensors:
        if tensor.role not in level.keeps:
            continue
        if index and tensor.role in level.may_bypass and draw(st.booleans()):
            continue
        place = draw(st.integers(0, len(loops))) if uneven and index else 0
        at[place].append(Storage(tensor.name, level.name))
    nodes = list(at[0])
    for loop, stores in zip(loops, at[1:], strict=True):
        nodes += [loop, *stores]
    return nodes
