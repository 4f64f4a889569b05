"""Which module may import which: the rules stand here once, and every import is held to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from syntax import syntax_of

import tilewright

ROOT = "tilewright"

FLOORS = {
    "foundation": "files, YAML, errors, registries, machine code, processes and databases; knows no subject",
    "workloads": "what is to be computed; knows nothing of machines",
    "hardware": "what computes it; a machine's rules name a workload's tensors and operators",
    "formulation": "which decisions there are and what each costs; no solver, no heuristic, so it judges all",
    "heuristics": "quick answers to formulated problems; no solver is known, so one may start from them",
    "solvers": "proven answers; a proof starts from what a heuristic finds",
    "report": "answers as documents, text, plots and pages",
    "api": "what a Python program asks: questions, answers, and how they show themselves",
    "benchmarks": "many runs asked of the interface, and what they tell, drawn with the means of reports",
    "cli": "how a person asks; may use all below",
}
"""From the ground up, with the reason; a floor imports itself and what stands above it in this list."""

COMPOSITION_ROOTS = {
    "cli.main": "the table of all verbs",
    "api.documents": "documents of both wings are loaded and checked alike",
    "api.catalog": "names the methods of both wings",
    "api.installation": "tries what both wings need",
    "cli.check": "one verb for documents of both wings, and for trees in files",
    "cli.evaluate": "one verb for documents of both wings",
    "cli.doctor": "times a small proof of each wing",
    "cli.catalog": "lists and shows what both wings ship",
    "cli.completion": "completes the names of both wings",
    "report.records.kinds": "the kinds of documents of both wings",
    "benchmarks.arena": "methods for tiled machines side by side, kept in the store of all benchmarks",
    "cli.benchmarks.compare": "the arena's verb",
}
"""Modules outside a ``scheduling/`` folder that may import from one, with all below them."""

ROOMS = {
    "herald": "heterogeneous sub-accelerators that share a memory",
    "tiled": "a grid of engines with buffers, links and DRAM ports",
}
"""The graph-level systems, each a room in the ``scheduling/`` wing of the floors that it needs."""

ARENA = ("arena", "compare")
"""Modules of these names put systems side by side, so they alone import more than one system's room."""

WINGS = ("mapping", "scheduling")

TABLES_OF_NAMES = ("hardware.mapping.cost_models",)
"""Modules whose texts name what stands above: tables of what users name in files of their floor."""

CLIENTS = ("benchmarks", "cli")
"""Floors above the Python interface, which ask it for every search."""

SEARCHING_BESIDE: dict[tuple[str, str], str] = {}
"""Imports of searches by clients, each with the reason; there is none today."""

SHARED_FLOORS = ("hardware", "formulation", "heuristics", "solvers")
"""Floors on which whatever stands outside both wings serves both; networks, on the workloads floor, know the
nest of their layers, and forms of reports are divided below the form."""


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement, or a text that names a module, as registries do to load it later.

    The name of a package that can be run (``python -m``) is no import: it is started as a program of its own.
    """

    by: str
    of: str
    at_start: bool = True
    """Whether importing ``by`` runs it: it stands neither in a function nor under ``TYPE_CHECKING``."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence about one import, and whether an import breaks it."""

    text: str
    reason: str
    breaks: Callable[[str, str], bool]


def folders(module: str) -> list[str]:
    """Folders and name of a module below the package, such as ``["solvers", "mapping", "branch"]``."""
    return module.split(".")[1:]


def floor(module: str) -> str:
    """The top-level folder of a module; empty for the package itself, and where it is run as a program."""
    folder = (folders(module) or [""])[0]
    return "" if folder == "__main__" else folder


def room(module: str) -> str | None:
    """The system whose folder in a ``scheduling/`` wing below the command line holds a module."""
    parts = folders(module)
    place = parts.index("scheduling") + 1 if "scheduling" in parts else len(parts)
    if floor(module) in ("cli", "") or place >= len(parts):
        return None
    return parts[place] if ".".join([ROOT, *parts[: place + 1]]) in PACKAGES else None


def is_composition_root(module: str) -> bool:
    """Whether a module may import both wings."""
    return any(f"{module}.".startswith(f"{ROOT}.{root}.") for root in COMPOSITION_ROOTS)


def _upwards(by: str, of: str) -> bool:
    order = list(FLOORS)
    return bool(floor(by) and floor(of)) and order.index(floor(of)) > order.index(floor(by))


def _from_mapping(by: str, of: str) -> bool:
    return "mapping" in folders(by) and "scheduling" in folders(of)


def _into_scheduling(by: str, of: str) -> bool:
    outside = bool(floor(by)) and "scheduling" not in folders(by) and not is_composition_root(by)
    return outside and "scheduling" in folders(of)


def _shared_into_wing(by: str, of: str) -> bool:
    shared = floor(by) in SHARED_FLOORS and not set(WINGS) & set(folders(by))
    return shared and bool(set(WINGS) & set(folders(of)))


def _between_rooms(by: str, of: str) -> bool:
    rooms = (room(by), room(of))
    return None not in rooms and rooms[0] != rooms[1] and not set(ARENA) & set(folders(by))


def is_search(module: str) -> bool:
    """Whether a module searches: a solver, a heuristic, or the search of a formulated problem."""
    return floor(module) in ("solvers", "heuristics") or (
        floor(module) == "formulation" and folders(module)[-1] == "search"
    )


def _beside_the_interface(by: str, of: str) -> bool:
    return floor(by) in CLIENTS and is_search(of) and _pair(by, of) not in SEARCHING_BESIDE


def _pair(by: str, of: str) -> tuple[str, str]:
    return by.removeprefix(f"{ROOT}."), of.removeprefix(f"{ROOT}.")


RULES = (
    Rule("a floor imports downwards only", "a floor can be read and tested without those above", _upwards),
    Rule(
        "mapping never imports scheduling",
        "one layer on one engine is a problem of its own; schedules are built of its answers",
        _from_mapping,
    ),
    Rule(
        "only scheduling and the composition roots import scheduling",
        "a graph-level system comes and goes without a change elsewhere",
        _into_scheduling,
    ),
    Rule(
        "no system's room imports another's",
        "a system is understood alone; only the arena sees them all",
        _between_rooms,
    ),
    Rule(
        "what both wings share imports neither wing",
        "the search core and what runs it are generic over what is searched: the next system fills them in",
        _shared_into_wing,
    ),
    Rule(
        "the command line and the benchmarks ask the Python interface for searches",
        "a question is asked in one way, whoever asks it, and its document is the same",
        _beside_the_interface,
    ),
)


def _modules() -> Iterator[tuple[str, Path]]:
    """Every module of the source tree; the links of folders are followed one by one."""
    top = Path(tilewright.__file__).parent
    yield ROOT, top / "__init__.py"
    for entry in sorted(top.iterdir()):
        base = entry.resolve()
        for path in sorted(base.rglob("*.py")) if entry.is_dir() else [base] if entry.suffix == ".py" else []:
            inside = path.relative_to(base).with_suffix("").parts if entry.is_dir() else ()
            if entry.name != "__init__.py":
                yield ".".join((ROOT, entry.stem, *inside)).removesuffix(".__init__"), path


FILES = dict(_modules())
PACKAGES = {name for name, path in FILES.items() if path.name == "__init__.py"}
_NAME = re.compile(rf"({ROOT}(?:\.\w+)+)(?::\w+)?")


def _imports(by: str, path: Path) -> Iterator[Import]:
    """Every import of this package in one file, wherever it stands."""
    package = by.split(".") if by in PACKAGES else by.split(".")[:-1]

    def ours(name: str) -> bool:
        return name.split(".")[0] == ROOT

    def module(name: str) -> str:
        while name not in FILES:
            name = name.rpartition(".")[0]
        return name

    names_texts = re.search(rf"[\"']{ROOT}\.", path.read_text(encoding="utf-8"))
    nodes: list[tuple[ast.AST, bool]] = [(syntax_of(path), True)]
    while nodes:
        node, at_start = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (Import(by, module(name.name), at_start) for name in node.names if ours(name.name))
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            if ours(base):
                yield from (Import(by, module(f"{base}.{name.name}"), at_start) for name in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = _NAME.fullmatch(node.value)
            named = match is not None and match[1] in FILES and f"{match[1]}.__main__" not in FILES
            if match and named and by.removeprefix(f"{ROOT}.") not in TABLES_OF_NAMES:
                yield Import(by, match[1], at_start=False)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ):
            at_start = False
        children = ast.iter_child_nodes(node)  # of which expressions hold texts alone
        nodes += [(each, at_start) for each in children if names_texts or not isinstance(each, ast.expr)]


def all_imports() -> list[Import]:
    """Every import within the package."""
    return [entry for by, path in FILES.items() for entry in _imports(by, path) if entry.of != by]


def faults(imports: Iterable[Import], rule: Rule) -> list[str]:
    """The imports that break a rule, as lines to read."""
    return sorted({f"{entry.by} imports {entry.of}" for entry in imports if rule.breaks(entry.by, entry.of)})


def cycle(imports: Iterable[Import]) -> list[str]:
    """Modules that import each other in a circle while they start; empty where there is none."""
    graph: dict[str, set[str]] = {}
    for entry in imports:
        if entry.at_start:
            graph.setdefault(entry.by, set()).add(entry.of)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    """Every import within the package."""
    return all_imports()


def test_every_folder_has_its_floor() -> None:
    """Each package below ``tilewright`` stands in the list of floors, and each floor of the list exists."""
    assert {floor(module) for module in FILES} - {""} == set(FLOORS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text)
def test_rule_holds(imports: list[Import], rule: Rule) -> None:
    """No import of the package breaks the rule."""
    broken = faults(imports, rule)
    assert not broken, f"{rule.text}, because {rule.reason}; but {'; '.join(broken)}"


def test_no_import_cycles(imports: list[Import]) -> None:
    """No modules import each other in a circle while they start."""
    assert not cycle(imports)


def test_every_room_is_listed_and_exists() -> None:
    """Below the command line, the folders of the ``scheduling/`` wings are the listed rooms, all of them."""
    rooms = {
        folders(name)[-1]
        for name in PACKAGES
        if floor(name) not in ("cli", "workloads") and folders(name)[-2:-1] == ["scheduling"]
    }
    assert rooms == set(ROOMS)


def test_both_wings_stand_on_every_floor() -> None:
    """Machines, problems, heuristics and solvers each have a folder for layers and one for graphs."""
    for name in SHARED_FLOORS:
        assert {f"{ROOT}.{name}.{wing}" for wing in WINGS} <= PACKAGES, name


def test_what_both_wings_share_is_on_the_floor() -> None:
    """The search core and what runs it stand outside the wings, where the last rule holds them."""
    core = ("limits", "stopping", "search", "result", "method", "objective")
    runners = ("running", "watched", "background", "cpsat_run")
    for name in (*(f"formulation.{module}" for module in core), *(f"solvers.{runner}" for runner in runners)):
        assert f"{ROOT}.{name}" in FILES, name


def test_machine_code_is_made_in_one_way() -> None:
    """Only the compiler of kernels asks LLVM, and nothing asks another compiler."""
    asking = {name for name, path in FILES.items() if re.search(r"import (llvmlite|numba)", path.read_text())}
    assert asking == {f"{ROOT}.foundation.kernels.code"}


_ALIAS = re.compile(r"^\w+(?:: TypeAlias)? = (?:npt\.)?NDArray\[np\.\w+\]$", re.M)


def test_arrays_of_one_width_have_one_name() -> None:
    """No module but that of the arrays names an array of a plain width."""
    home = f"{ROOT}.foundation.arrays"
    assert len(_ALIAS.findall(FILES[home].read_text())) >= 6
    named = {name: _ALIAS.findall(path.read_text()) for name, path in FILES.items() if name != home}
    assert {name: aliases for name, aliases in named.items() if aliases} == {}


def test_composition_roots_are_needed(imports: list[Import]) -> None:
    """Every named exception imports scheduling today; one that no longer does has to go from the list."""
    used = {entry.by for entry in imports if "scheduling" in folders(entry.of)}
    for root in COMPOSITION_ROOTS:
        assert any(f"{by}.".startswith(f"{ROOT}.{root}.") for by in used), root


def test_searches_beside_the_interface_are_needed(imports: list[Import]) -> None:
    """Every exception has a reason and is an import of today; one that no longer is has to go."""
    made = {_pair(entry.by, entry.of) for entry in imports if is_search(entry.of)}
    for pair, reason in SEARCHING_BESIDE.items():
        assert reason, pair
        assert pair in made, pair


@pytest.mark.parametrize(
    ("by", "of", "rule"),
    [
        ("formulation.search", "solvers.running", 0),
        ("formulation.search", "heuristics.mapping.kapla", 0),
        ("heuristics.mapping.kapla", "solvers.mapping.branch", 0),
        ("report.html.figures", "benchmarks.curves", 0),
        ("workloads.catalog", "hardware.mapping.engine", 0),
        ("cli.mapping.map", "cli.scheduling.schedule", 1),
        ("solvers.mapping.branch", "solvers.scheduling.herald.cost_tables.costs", 1),
        ("solvers.watched", "solvers.scheduling.herald.cost_tables.costs", 2),
        ("report.records.network", "workloads.scheduling.workload", 2),
        ("solvers.scheduling.tiled.costs", "formulation.scheduling.herald.problem", 3),
        ("formulation.search", "formulation.mapping.problem", 4),
        ("solvers.running", "formulation.scheduling.herald.search", 4),
        ("solvers.cpsat_run", "workloads.mapping.operator", 4),
        ("cli.mapping.map", "solvers.mapping.networks.network_search", 5),
        ("cli.doctor", "heuristics.mapping.registry", 5),
        ("cli.scheduling.schedule", "formulation.scheduling.herald.search", 5),
        ("benchmarks.work", "solvers.mapping.solve", 5),
    ],
)
def test_rules_see_what_breaks_them(monkeypatch: pytest.MonkeyPatch, by: str, of: str, rule: int) -> None:
    """An import against a rule is found by that rule."""
    monkeypatch.setattr(f"{__name__}.PACKAGES", PACKAGES | {f"{ROOT}.solvers.scheduling.tiled"})
    planted = Import(f"{ROOT}.{by}", f"{ROOT}.{of}")
    assert faults([planted], RULES[rule]) == [f"{planted.by} imports {planted.of}"]


def test_reading_finds_every_kind_of_import(tmp_path: Path) -> None:
    """Imports in functions, relative ones, those for types only and names in a text are all read."""
    path = tmp_path / "module.py"
    path.write_text(
        "import tilewright.solvers.running\n"
        "from ..formulation import search as looking\n"
        "if TYPE_CHECKING:\n    from tilewright.solvers.watched import watched\n"
        "def later():\n    from . import options\n"
        "VERBS = {'check': 'tilewright.cli.check:check_command', 'program': 'tilewright.cli'}\n"
    )
    assert set(_imports("tilewright.cli.evaluate", path)) == {
        Import("tilewright.cli.evaluate", "tilewright.solvers.running"),
        Import("tilewright.cli.evaluate", "tilewright.formulation.search"),
        Import("tilewright.cli.evaluate", "tilewright.solvers.watched", at_start=False),
        Import("tilewright.cli.evaluate", "tilewright.cli.options", at_start=False),
        Import("tilewright.cli.evaluate", "tilewright.cli.check", at_start=False),
    }


def test_cycles_are_found() -> None:
    """Three modules in a circle are a cycle, unless one of the imports waits for a call."""
    circle = [Import("a", "b"), Import("b", "c"), Import("c", "a")]
    assert set(cycle(circle)) == {"a", "b", "c"}
    assert not cycle([*circle[:2], Import("c", "a", at_start=False)])
