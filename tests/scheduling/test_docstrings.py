"""Docstrings of the scheduling wing: parameters are described, under the names that they have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tilewright

ROOT = Path(tilewright.__file__).parent
FOLDERS = ("formulation/scheduling", "solvers/scheduling", "heuristics/scheduling")
ROOMS_LEFT_OUT = ("tiled/set/", "tiled/kapla/")
MANY = 4
"""Parameters from which on a section is due."""

SECTION = re.compile(r"Parameters\n-{10}\n((?:.+\n?)+)")


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Path and syntax of every module."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not any(room in name for room in ROOMS_LEFT_OUT):
                yield name, ast.parse(path.read_text(encoding="utf-8"))


def public(node: ast.AST, owner: ast.ClassDef | None = None) -> Iterator[tuple[str, ast.FunctionDef, str]]:
    """Name, syntax and docstring of every public function and method; a constructor has its class's."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public(child, child)
        elif isinstance(child, ast.FunctionDef):
            if child.name == "__init__" and owner is not None:
                yield owner.name, child, ast.get_docstring(owner) or ""
            elif not child.name.startswith("_"):
                name = child.name if owner is None else f"{owner.name}.{child.name}"
                yield name, child, ast.get_docstring(child) or ""


def parameters(function: ast.FunctionDef) -> set[str]:
    """Names of all parameters but the object."""
    listed = function.args
    return {a.arg for a in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)} - {"self", "cls"}


def described(docstring: str) -> set[str]:
    """Names in the section of parameters."""
    section = SECTION.search(docstring)
    lines = section[1].splitlines() if section else []
    heads = [line.split(" : ")[0] for line in lines if not line.startswith(" ") and " : " in line]
    return {name for head in heads for name in head.split(", ")}


def test_functions_of_many_parameters_describe_them() -> None:
    """Every public function or method of four parameters or more has a section Parameters."""
    lacking = [
        f"{path}: {name}"
        for path, tree in sources()
        for name, function, docstring in public(tree)
        if len(parameters(function)) >= MANY and not described(docstring)
    ]
    assert lacking == []


def test_described_parameters_exist() -> None:
    """No section of a function names a parameter that has been renamed or dropped."""
    stale = [
        f"{path}: {name} {sorted(described(docstring) - parameters(function))}"
        for path, tree in sources()
        for name, function, docstring in public(tree)
        if function.name != "__init__" and described(docstring) - parameters(function)
    ]
    assert stale == []
