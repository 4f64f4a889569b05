"""Docstrings say what parameters mean, and name no parameter that is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from syntax import syntax_of

import tilewright

PACKAGE = Path(tilewright.__file__).parent
MANY = 4
"""Parameters from which on a public function explains them."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Documented:
    """A function or a class with its docstring."""

    module: str
    name: str
    node: Function | ast.ClassDef
    docstring: str

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.module}:{self.node.lineno}: {self.name}"


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package."""
    paths = {}
    for folder in (PACKAGE, *(link for link in PACKAGE.iterdir() if link.is_symlink())):
        for path in folder.rglob("*.py"):
            paths[str(path.relative_to(PACKAGE))] = path
    return {module: syntax_of(path) for module, path in sorted(paths.items())}


def documented() -> Iterator[Documented]:
    """Functions and classes of modules and classes; a constructor has the text of its class too."""

    def inside(module: str, prefix: str, body: list[ast.stmt], text: str) -> Iterator[Documented]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                own = ast.get_docstring(node) or ""
                yield Documented(module, prefix + node.name, node, own)
                yield from inside(module, f"{prefix}{node.name}.", node.body, own)
            elif isinstance(node, Function):
                own = ast.get_docstring(node) or ""
                is_constructor = node.name == "__init__"
                yield Documented(module, prefix + node.name, node, own + text if is_constructor else own)

    for module, tree in trees().items():
        yield from inside(module, "", tree.body, "")


def arguments(node: Function) -> set[str]:
    """Names of all parameters but the object's and the class's."""
    own = node.args
    names = [*own.posonlyargs, *own.args, *own.kwonlyargs, *filter(None, (own.vararg, own.kwarg))]
    return {argument.arg for argument in names} - {"self", "cls"}


def is_public(item: Documented) -> bool:
    """Whether no part of the name is private; a constructor counts as its class."""
    return not any(re.match(r"_(?!_init__)", part) for part in item.name.split("."))


def is_command(item: Documented) -> bool:
    """Whether it is a verb of the command line: the help of its flags explains the parameters."""
    return item.module.startswith("cli/") and item.name.endswith("_command")


def is_overload(item: Documented) -> bool:
    """Whether it is a signature alone, explained where the body stands."""
    return any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in item.node.decorator_list)


def test_many_parameters_are_explained() -> None:
    """A public function with four or more parameters has a section on them."""
    lacking = [
        item.place
        for item in documented()
        if isinstance(item.node, Function)
        and is_public(item)
        and not is_command(item)
        and not is_overload(item)
        and len(arguments(item.node)) >= MANY
        and not explained(item.docstring)
    ]
    assert lacking == []


def explained(docstring: str) -> list[str]:
    """The names that a docstring's section on parameters explains."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}|\Z)", docstring, re.M | re.S)
    entries = re.findall(r"^(\S[^\n]*?) : ", section[1], re.M) if section else []
    return [name.strip().lstrip("*") for entry in entries for name in entry.split(",")]


@cache
def classes() -> dict[str, ast.ClassDef]:
    """Every class of the package by its name."""
    return {item.node.name: item.node for item in documented() if isinstance(item.node, ast.ClassDef)}


def fields(node: ast.ClassDef) -> set[str]:
    """What a class is made of: its constructor's parameters and its fields, inherited ones included."""
    names: set[str] = set()
    for base in node.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        name = named.id if isinstance(named, ast.Name) else ""
        if name in classes() and name != node.name:
            names |= fields(classes()[name])
    for entry in node.body:
        if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
            names.add(entry.target.id)
        elif isinstance(entry, Function) and entry.name == "__init__":
            names |= arguments(entry)
    return names


def test_explained_parameters_exist() -> None:
    """Every name in a section on parameters is one of the function, or a field of the class."""
    unknown = []
    for item in documented():
        known = fields(item.node) if isinstance(item.node, ast.ClassDef) else arguments(item.node)
        names = [] if item.name.endswith("__init__") else explained(item.docstring)
        unknown += [f"{item.place}: {name}" for name in names if name not in known]
    assert unknown == []


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("One line.", []),
        ("Some.\n\nParameters\n----------\na : x\nb, c : y\n    and : more", ["a", "b", "c"]),
        ("Some.\n\nParameters\n----------\n*a : x\n\nRaises\n------\nValueError : no", ["a"]),
    ],
)
def test_sections_are_read(docstring: str, names: list[str]) -> None:
    """Names are read with their commas and stars, and from no other section."""
    assert explained(docstring) == names


VAGUE = {"one", "found", "thing", "things", "stuff"}
"""Names that do not say what they hold."""


def test_variables_are_named_after_what_they_hold() -> None:
    """No variable and no parameter of the package has a name that would fit anything."""
    assert [
        f"{module}:{node.lineno}: {name}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.arg | ast.Name | ast.Attribute) and (name := _given(node)) in VAGUE
    ] == []


def _given(node: ast.arg | ast.Name | ast.Attribute) -> str:
    """The name of a parameter, or of what is given a value; empty where a value is read."""
    if isinstance(node, ast.arg):
        return node.arg
    if not isinstance(node.ctx, ast.Store):
        return ""
    return node.id if isinstance(node, ast.Name) else node.attr
