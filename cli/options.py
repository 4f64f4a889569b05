"""Flags that verbs share, and how their texts are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from tilewright.cli import completion
from tilewright.cli.terminal.clock import call
from tilewright.foundation.errors import InputError, did_you_mean, unknown_name

if TYPE_CHECKING:
    from tilewright.formulation import network_objective
    from tilewright.formulation import objective as objectives
    from tilewright.workloads.onnx.options import OnnxOptions

FactorKind = Literal["perfect", "imperfect"]
StorageKind = Literal["even", "uneven"]
TileKind = Literal["trip-counts", "every"]
FACTOR_KINDS: tuple[FactorKind, ...] = ("perfect", "imperfect")
STORAGE_KINDS: tuple[StorageKind, ...] = ("even", "uneven")
TILE_KINDS: tuple[TileKind, ...] = ("trip-counts", "every")
Known = TypeVar("Known", bound=str)
Parsed = TypeVar("Parsed")

_ONNX = "ONNX models"

Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        "-o",
        help="energy, cycles, edp, ed2p or E^a*D^b.",
        autocompletion=completion.one_of("energy", "cycles", "edp", "ed2p"),
        rich_help_panel="Problem",
    ),
]
NetworkObjective = Annotated[
    str,
    typer.Option(
        "--objective",
        "-o",
        help="energy, cycles, edp, ed2p or E^a*D^b of total energy and cycles; sum-edp and the like for the "
        "sum of the layers' own.",
        autocompletion=completion.one_of("energy", "cycles", "edp", "ed2p", "sum-edp", "sum-ed2p"),
        rich_help_panel="Problem",
    ),
]
Arch = Annotated[
    str,
    typer.Option(
        "--arch",
        "-a",
        help="Preset (see [b]list archs[/b]) or YAML file.",
        autocompletion=completion.machines,
        rich_help_panel="Problem",
    ),
]
CostModel = Annotated[
    str | None,
    typer.Option(
        "--cost-model",
        help="Instead of the machine's own.",
        autocompletion=completion.cost_models,
        rich_help_panel="Problem",
    ),
]
Factors = Annotated[
    str | None,
    typer.Option(
        "--factors",
        metavar="KIND",
        autocompletion=completion.one_of(*FACTOR_KINDS),
        help="perfect (tiles divide each other) or imperfect (the last tile may be smaller); by default "
        "the cost model's choice.",
        rich_help_panel="Problem",
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="KIND",
        autocompletion=completion.one_of(*STORAGE_KINDS),
        help="even (all tensors of a level begin to live at one point; the default) or uneven (each at its "
        "own).",
        rich_help_panel="Problem",
    ),
]
Tiles = Annotated[
    str | None,
    typer.Option(
        "--tiles",
        metavar="KIND",
        autocompletion=completion.one_of(*TILE_KINDS),
        help="Of imperfect factors: trip-counts (the least tile of every trip count; the default) or every "
        "integer.",
        rich_help_panel="Problem",
    ),
]
Batch = Annotated[
    int | None, typer.Option("--batch", "-b", help="Samples per run.", rich_help_panel="Problem")
]


def _with_files(texts: list[str] | None) -> list[str] | None:
    """Constraints, with the lines of a file in place of its name behind ``@``."""
    if not any(text.startswith("@") for text in texts or ()):
        return texts
    from tilewright.foundation.disk import DESCRIPTION_BYTES, read_text

    lines: list[str] = []
    for text in texts or ():
        if not text.startswith("@"):
            lines.append(text)
            continue
        written = read_text(Path(text[1:]), DESCRIPTION_BYTES, "constraints, one a line")
        lines += [part for line in written.splitlines() if (part := line.partition("#")[0].strip())]
    return lines


Constraints = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        metavar="TEXT",
        callback=_with_files,
        help="Such as 'cycles<=1e6', 'utilization>=0.8', 'tile(K@SPM)<=64', 'spatial=C,K', or @FILE with one "
        "a line; repeatable.",
        rich_help_panel="Problem",
    ),
]
ConstraintSet = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint-set",
        metavar="NAME",
        autocompletion=completion.one_of("gemmini"),
        help="The constraints of a named set; gemmini: what the loops of its library express; repeatable.",
        rich_help_panel="Problem",
    ),
]
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=SIZE",
        help="Size of an open axis of an ONNX model's inputs, by name (h=224) or by input and axis "
        "(x.2=224); repeatable.",
        rich_help_panel=_ONNX,
    ),
]
SkipUnsupported = Annotated[
    bool,
    typer.Option(
        "--skip-unsupported",
        help="Leave out unsupported nodes of an ONNX model, and list them.",
        rich_help_panel=_ONNX,
    ),
]
StoredWidths = Annotated[
    bool,
    typer.Option(
        "--stored-widths",
        help="Elements as wide as a quantised ONNX model stores them; otherwise the machine's width counts.",
        rich_help_panel=_ONNX,
    ),
]
Branches = Annotated[
    list[str] | None,
    typer.Option(
        "--branch",
        metavar="NODE=then|else",
        help="Side that an ONNX model's If takes, where its condition depends on the data; NODE may be a "
        "glob pattern; repeatable.",
        rich_help_panel=_ONNX,
    ),
]
Trips = Annotated[
    list[str] | None,
    typer.Option(
        "--trip",
        metavar="NODE=COUNT",
        help="How often a Loop or Scan of an ONNX model runs; NODE may be a glob pattern; repeatable.",
        rich_help_panel=_ONNX,
    ),
]
Layers = Annotated[
    list[str] | None,
    typer.Option(
        "--layers",
        "--layer",
        metavar="GLOB",
        help="Only layers of these names; repeatable.",
        rich_help_panel="Problem",
    ),
]
AllOperators = Annotated[
    bool,
    typer.Option("--all-operators", help="Pooling and element-wise layers too.", rich_help_panel="Problem"),
]
OnlyLayers = Annotated[
    list[str] | None,
    typer.Option(
        "--layers", metavar="GLOB", help="Only layers of these names; repeatable.", rich_help_panel="Problem"
    ),
]


def _counted(text: str | None) -> str | None:
    """The limit of the call, under which all that is read counts from here on."""
    call.limit(parse_duration(text))
    return text


TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        "-t",
        metavar="TIME",
        callback=_counted,
        help="For the whole call: 60, 90s, 5m, 1h.",
        rich_help_panel="Search",
    ),
]
Gap = Annotated[
    str,
    typer.Option(
        "--gap", metavar="GAP", help="Stop at this relative gap: 0, 0.01, 1%.", rich_help_panel="Search"
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", help="Workers of parallel solvers; all cores by default.", rich_help_panel="Search"
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of every random choice.", rich_help_panel="Search")
]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="Same answer and trace at every run.", rich_help_panel="Search"),
]
Solver = Annotated[
    str,
    typer.Option(
        "--solver",
        "-s",
        autocompletion=completion.solvers,
        help="auto, an exact solver ([b]list solvers[/b]) or a heuristic with its options, such as "
        r"dmazerunner\[opt=1-3] ([b]list methods[/b]).",
        rich_help_panel="Search",
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        help="table, json, jsonl or csv.",
        autocompletion=completion.one_of("table", "json", "jsonl", "csv"),
        rich_help_panel="Output",
    ),
]
ShortFormat = Annotated[str, typer.Option("--format", "-f", help="table or json.", rich_help_panel="Output")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Also write results to a .json, .jsonl, .yaml or .csv file, after every layer.",
        rich_help_panel="Output",
    ),
]
Log = Annotated[
    Path | None, typer.Option("--log", help="Also write progress to a file.", rich_help_panel="Output")
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", help="Write a self-contained HTML report.", rich_help_panel="Output"
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Parallel runs; one per core by default.", rich_help_panel="Execution"),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="Run on this Dask cluster instead.", rich_help_panel="Execution"
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Only errors and reasons on stderr.", rich_help_panel="Output")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Every step, effort of searches, tracebacks.", rich_help_panel="Output"
    ),
]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|m|h|)")
_GAP = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e-?[0-9]+)?|\.[0-9]+)\s*(%?)")


def parse_duration(text: str | None, flag: str = "--time-limit") -> float | None:
    """Seconds of ``60``, ``90s``, ``5m``, ``1h30m``; ``None`` for no limit.

    Raises ``InputError`` for anything else, and for zero.
    """
    if text is None:
        return None
    parts = _DURATION.findall(text.strip())
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    written = "".join(number + unit for number, unit in parts)
    if not parts or written != re.sub(r"\s", "", text) or (len(parts) > 1 and any(not u for _, u in parts)):
        raise InputError(flag, None, f"cannot read {text!r}, expected a time such as 60, 90s, 5m or 1h30m")
    if not 0 < seconds < 1e9:
        raise InputError(flag, None, f"expected a time above 0, got {text!r}")
    return seconds


def parse_gap(text: str, flag: str = "--gap") -> float:
    """A relative gap of ``0``, ``0.01`` or ``1%``; raises ``InputError`` outside ``[0, 1)``."""
    match = _GAP.fullmatch(text.strip())
    gap = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= gap < 1:
        raise InputError(flag, None, f"expected a gap such as 0, 0.01 or 1%, below 100 %, got {text!r}")
    return gap


def read_objective(text: str, flag: str = "--objective") -> objectives.Objective:
    """The objective of a text; raises ``InputError`` with the nearest name."""
    from tilewright.formulation.objective import parse_objective

    return _hinted(parse_objective, text, flag, ("energy", "cycles", "edp", "ed2p"))


def read_network_objective(text: str) -> network_objective.NetworkObjective:
    """The objective of a network, ``sum-`` before it or not; raises ``InputError`` with the nearest name."""
    from tilewright.formulation.network_objective import parse_network_objective

    names = ("energy", "cycles", "edp", "ed2p", "sum-edp", "sum-ed2p")
    return _hinted(parse_network_objective, text, "--objective", names)


def _hinted(parse: Callable[[str], Parsed], text: str, flag: str, names: tuple[str, ...]) -> Parsed:
    try:
        return parse(text)
    except InputError as error:
        raise InputError(flag, error.field, error.message + did_you_mean(text, names)) from None


def parse_factors(text: str | None) -> FactorKind | None:
    """The kind of tile sizes that was asked for; raises ``InputError`` for an unknown one."""
    return None if text is None else parse_choice(text, "--factors", FACTOR_KINDS)


def parse_onnx(
    dims: list[str] | None,
    *,
    skip: bool,
    branches: list[str] | None = None,
    trips: list[str] | None = None,
    stored_widths: bool = False,
) -> OnnxOptions:
    """How an ONNX model is imported.

    Parameters
    ----------
    dims, branches, trips : texts of ``--dim``, ``--branch`` and ``--trip``
    skip, stored_widths : whether ``--skip-unsupported`` and ``--stored-widths`` were given

    Raises
    ------
    InputError : for a text that is none, and for a name that is given twice
    """
    from tilewright.workloads.onnx.options import OnnxOptions

    def counts(texts: list[str] | None, flag: str, expected: str) -> dict[str, int]:
        values: dict[str, int] = {}
        for text in texts or ():
            name, _, size = text.rpartition("=")
            if not name or not size.isdecimal() or not 0 < int(size) < 10**9 or name in values:
                raise InputError(flag, text, f"expected {expected}")
            values[name] = int(size)
        return values

    sides: dict[str, str] = {}
    for text in branches or ():
        name, _, side = text.rpartition("=")
        if not name or side not in ("then", "else") or name in sides:
            raise InputError("--branch", text, "expected a node, once, with its side, such as If_0=then")
        sides[name] = side
    sizes = counts(dims, "--dim", "an axis, once, with its size, such as h=224 or x.2=224")
    rounds = counts(trips, "--trip", "a node, once, with its number of rounds, such as Loop_0=8")
    return OnnxOptions(sizes, skip, sides, rounds, "flags", stored_widths)


def parse_storage(text: str | None) -> StorageKind | None:
    """The kind of storage that was asked for; raises ``InputError`` for an unknown one."""
    return None if text is None else parse_choice(text, "--storage", STORAGE_KINDS)


def parse_tiles(text: str | None) -> TileKind | None:
    """The kind of tiles that was asked for; raises ``InputError`` for an unknown one."""
    return None if text is None else parse_choice(text, "--tiles", TILE_KINDS)


def parse_count(count: int | None, flag: str) -> int | None:
    """A number of things, at least one; raises ``InputError`` for less."""
    if count is not None and count < 1:
        raise InputError(flag, None, f"expected at least 1, got {count}")
    return count


def parse_threads(count: int | None) -> int:
    """Worker threads: as many as asked for, by default one per core that the process may use."""
    if count is None:
        from tilewright.foundation.processes import available_cores

        return available_cores()
    parse_count(count, "--threads")
    return count


def parse_jobs(count: int | None) -> int:
    """Worker processes: as many as asked for, but no more than cores that the process may use."""
    return min(parse_threads(count), parse_threads(None))


def parse_choice(text: str, flag: str, known: Collection[Known]) -> Known:
    """One of the known texts; raises ``InputError`` with the nearest one."""
    for choice in known:
        if choice == text:
            return choice
    raise InputError(flag, None, unknown_name(text, known))


def check_workers(jobs: int | None, cluster: str | None) -> None:
    """Raise ``InputError`` where both a cluster and a number of processes are named."""
    if cluster is not None and jobs is not None:
        raise InputError("--jobs", None, "a cluster decides how many runs are parallel, expected no --jobs")
