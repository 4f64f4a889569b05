"""Whatever the documents name exists: files, folders, modules, headings, verbs, flags and classes."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from syntax import syntax_of

from tilewright.cli.main import app
from tilewright.foundation.extensions import GROUPS

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING")),
]
FOLDERS = (
    "benchmarks",
    "cli",
    "docs",
    "formulation",
    "hardware",
    "heuristics",
    "report",
    "solvers",
    "src",
    "tests",
)
FOLDERS += ("studies", "workloads", ".ci")
WIDEST = 120

GENERATED = re.compile(r"<!-- (?:generated|figures|paper): .*?<!-- end(?: of paper)? -->", re.DOTALL)
CODE = re.compile(r"```.*?```", re.DOTALL)
TICKED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(
    rf"(?<![\w./-])((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./*-]*\w[\w*]*|[\w/]+\.py)(?![\w(])"
)
DOTTED = re.compile(r"(?<![\w./-])tilewright(?:\.\w+)+(?![\w/-])")
CALL = re.compile(r"^\s*(?:[\w./]*/)?tilewright [^\n]*(?:\\\n[^\n]*)*", re.MULTILINE)
TICKED_CALL = re.compile(r"`(tilewright [^`\n]+)`")
CLASS = re.compile(r"([A-Z][a-z]+(?:[A-Z][a-z]*)*)(?:\.(\w+))?")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return CODE.sub("", text_of(page))


def each(names: set[str]) -> str:
    return ", ".join(sorted(names))


@cache
def source_files() -> frozenset[Path]:
    """Every module, with the paths from the top of the repository."""
    return frozenset(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def defined_names(wanted: set[str]) -> dict[str, set[str]]:
    """Those names that classes and their like have, with the names of their members; of several, of all."""
    stated = re.compile(rf"^\s*(?:class )?(?:{'|'.join(wanted)})\b(?: = |[:(])", re.MULTILINE)
    defined: dict[str, set[str]] = {}
    for path in source_files():
        if "tests" in path.relative_to(ROOT).parts or not stated.search(text_of(path)):
            continue
        for node in ast.walk(syntax_of(path)):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) if name in wanted:
                    defined.setdefault(name, set())
                case ast.ClassDef(name=name) if name in wanted:
                    defined.setdefault(name, set()).update(members_of(node))
    return defined


def members_of(node: ast.ClassDef) -> Iterator[str]:
    """Methods, fields and attributes of a class."""
    for part in ast.walk(node):
        match part:
            case ast.FunctionDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name


@cache
def verbs_of_program() -> dict[str, Any]:
    """The commands of the program by their names."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as web pages of repositories make them."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_exist(page: Path) -> None:
    """Files and folders are named by their path from the top, modules where they stand."""
    own = set(re.findall(r"^# (\w+\.\w+)$", text_of(page), re.MULTILINE))
    missing = set()
    for name in FILE.findall(prose(page)):
        path = name.rstrip("./*")
        exists = (ROOT / path).exists() or path in own or (page.parent / path).exists()
        if not exists and "/" not in path:
            exists = any(source_file.name == path for source_file in source_files())
        if not exists and "NAME" not in path:
            missing.add(name)
    assert not missing, each(missing)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Links within the repository name files that exist, and headings that these have."""
    dead = set()
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.add(link)
    assert not dead, each(dead)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_exist(page: Path) -> None:
    """A dotted name is a module, or what one defines; names of document schemas end in a number."""
    dead = set()
    for name in set(DOTTED.findall(text_of(page))) - {f"tilewright.{group}" for group in GROUPS}:
        module, _, member = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            try:
                if not hasattr(importlib.import_module(module), member):
                    dead.add(name)
            except ModuleNotFoundError:
                dead.add(name)
    assert not dead, each(dead)


def test_classes_exist() -> None:
    """Names in the form of the project's classes are those of the package, and so are their members."""
    mentions = [
        (page, text, *match.groups())
        for page in PAGES
        for text in TICKED.findall(GENERATED.sub("", prose(page)))
        if (match := CLASS.fullmatch(text)) and (re.search(r"[a-z][A-Z]", match[1]) or match[2])
    ]  # one word is a term as often as a class
    known = defined_names({name for _, _, name, _ in mentions})
    dead = {
        f"{page.name}: {text}"
        for page, text, name, member in mentions
        if (name not in known and not is_defined(name, page) and name not in FOREIGN)
        or (member is not None and name in known and member not in known[name])
    }
    assert not dead, each(dead)


def is_defined(name: str, page: Path) -> bool:
    """Whether an example of the page defines a name."""
    return re.search(rf"^(?:class {name}\b|{name} = )", text_of(page), re.MULTILINE) is not None


FOREIGN = (
    *("ConstantOfShape", "GatherElements", "GridSample", "GroupQueryAttention", "MultiHeadAttention", "TopK"),
    *("KeyboardInterrupt", "KiB", "MiB"),
)
"""Names of ONNX operations, of Python itself, and of units."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_understood(page: Path) -> None:
    """Every call names a verb and flags that it has."""
    verbs = verbs_of_program()
    own = set(re.findall(r'^VERBS\["(\w+)"\]', text_of(page), re.MULTILINE))
    text = text_of(page).replace("\\\n", " ")
    wrong = set()
    for call in [*CALL.findall(text), *TICKED_CALL.findall(text)]:
        words = call.split("#")[0].split()
        words = [word.strip("'\"") for word in words[1:]]
        if not words or words[0].startswith("-") or words[0] in own or words[0] == "VERB":
            continue
        if words[0] not in verbs:
            wrong.add(call.strip())
            continue
        known = {flag for param in verbs[words[0]].params for flag in (*param.opts, *param.secondary_opts)}
        known |= {"-h", "--help"}
        for word in words[1:]:
            flag = re.match(r"--[a-z][\w-]*", word)
            if flag and flag[0] not in known:
                wrong.add(f"{call.strip()} ({flag[0]})")
    assert not wrong, each(wrong)


def test_flags_exist() -> None:
    """A flag in running text is one of some verb, or of a program whose name stands on the same page."""
    known = {
        flag
        for verb in verbs_of_program().values()
        for param in verb.params
        for flag in (*param.opts, *param.secondary_opts)
    }
    others = {flag for path in source_files() for flag in re.findall(r'"(--[a-z][\w-]*)"', text_of(path))}
    for path in (ROOT / "studies").glob("*.py"):  # programs of their own
        names = {argument.arg for argument in ast.walk(syntax_of(path)) if isinstance(argument, ast.arg)}
        others |= {"--" + name.replace("_", "-") for name in names}
    known |= others | {"--version", "--help", "--install-completion", "--show-completion"}
    dead = {
        f"{page.name}: {match[0]}"
        for page in PAGES
        for text in TICKED.findall(prose(page))
        if (match := re.match(r"--[a-z][\w-]*", text)) and match[0] not in known
    }
    assert not dead, each(dead)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_lines_are_not_too_wide(page: Path) -> None:
    """Prose keeps to 120 characters; rows of tables, blocks of code and links cannot be broken."""
    wide = [
        line
        for line in CODE.sub("", text_of(page)).splitlines()
        if len(line) > WIDEST and not line.startswith(("|", "    ", "<!--")) and " " in line[:WIDEST]
    ]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_nothing_stands_twice(page: Path) -> None:
    """No heading, row of a table, item or long line is there a second time, but in generated tables."""
    text = re.sub(r"<!--.*?-->", "", GENERATED.sub("", prose(page)), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if len(line) > 30 and not re.fullmatch(r"[|:\s-]+", line)]
    assert not {line for line, count in Counter(lines).items() if count > 1 and not is_head(line, text)}
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert len(titles) == len(set(titles)), titles


def is_head(line: str, text: str) -> bool:
    """Whether a line is the heading of a table, which several may share."""
    return re.search(re.escape(line) + r"\n\|[-:| ]+\|\n", text) is not None
