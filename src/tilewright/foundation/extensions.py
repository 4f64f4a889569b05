"""What is added from outside: entry points of installed packages, and Python files that the user imports.

An installed package names what it adds in groups of entry points (`GROUPS`).  A file adds to the registries
when it runs.  Both are looked at only when a name is not one of the package's own, or when all names are
listed.  An environment variable names the imported files: worker processes inherit it and import the same
files when a name or a pickled object asks for them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from tilewright.foundation.errors import InputError, one_line

FLAG = "--import"
VARIABLE = "TILEWRIGHT_IMPORT"
"""Files to import, separated as paths are on this system (``:`` on POSIX)."""

GROUPS = {
    "cost_models": "a class with the members of `CostModel`",
    "solvers": "an exact method for one layer",
    "heuristics": "a heuristic for one layer",
    "herald_methods": "a method for schedules on sub-accelerators",
    "tiled_methods": "a method for plans on tiled machines",
    "machines": "the path of a machine's YAML file",
    "systems": "the path of the YAML file of a system of sub-accelerators",
    "tiled_machines": "the path of a tiled machine's YAML file",
    "workloads": "the path of a workload's YAML file",
    "networks": "a function of the batch that returns a `Blueprint` or a `Network`",
    "plots": "a module with `draw(store, rows)`",
}
"""Groups of entry points, ``tilewright.NAME`` each, and what an entry of each refers to."""


_IMPORTING: list[Path] = []


def import_files(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Run Python files, each once per process, and have worker processes do the same.

    Parameters
    ----------
    paths : files that end in ``.py``

    Raises
    ------
    InputError : for a file that cannot be read, whose name is that of another module, or that raises an
        exception
    """
    files = [Path(path).absolute() for path in paths]
    for file in files:
        _check(file)
    known = _files()
    os.environ[VARIABLE] = os.pathsep.join(str(file) for file in dict.fromkeys([*known, *files]))
    load_imported()


def load_imported() -> None:
    """Run the files that the environment names and that have not run in this process.

    Raises
    ------
    InputError : as `import_files`
    """
    files = _files()
    if not files:
        return
    install_finder()
    for file in files:
        if file.stem not in sys.modules:
            _check(file)
            _IMPORTING.append(file)
            try:
                importlib.import_module(file.stem)
            except InputError:
                raise
            except Exception as error:
                sys.modules.pop(file.stem, None)
                reason = f"{type(error).__name__}: {one_line(error)}"
                raise InputError(f"{file}{_line_of(error, file)}", None, reason) from error
            finally:
                _IMPORTING.pop()


def is_importing() -> bool:
    """Whether a file that the environment names is being run."""
    return bool(_IMPORTING)


def install_finder() -> None:
    """Let ``import NAME`` find the files that the environment names, wherever they lie."""
    if not any(isinstance(finder, _ImportedFiles) for finder in sys.meta_path):
        sys.meta_path.append(_ImportedFiles())


class Extension:
    """An entry point of an installed package.

    Parameters
    ----------
    name : under which users ask for it
    module, attribute : where it is; an empty attribute means the module itself
    package : name and version of the package that brings it
    """

    def __init__(self, name: str, module: str, attribute: str, package: str) -> None:
        self.name = name
        self.module = module
        self.attribute = attribute
        self.package = package

    def load(self) -> object:
        """What it refers to.

        Raises
        ------
        InputError : where it cannot be imported, naming the package
        """
        try:
            value: object = importlib.import_module(self.module)
            for part in filter(None, self.attribute.split(".")):
                value = getattr(value, part)
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            raise InputError(self.name, None, f"{self.package} does not load: {reason}") from error
        return value

    def path(self) -> Path:
        """The file that it refers to.

        Raises
        ------
        InputError : where it refers to no path
        """
        value = self.load()
        if not isinstance(value, str | os.PathLike):
            raise InputError(self.name, None, f"expected {self.package} to name a path, got {value!r}")
        return Path(value)


@cache
def extensions(group: str) -> dict[str, Extension]:
    """The entry points of a group by name, from all installed packages; of equal names the first.

    Parameters
    ----------
    group : one of `GROUPS`
    """
    from importlib.metadata import entry_points

    listed: dict[str, Extension] = {}
    for point in sorted(
        entry_points(group=f"tilewright.{group}"), key=lambda point: (point.name, point.value)
    ):
        package = "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
        listed.setdefault(point.name, Extension(point.name, point.module, point.attr, package))
    return listed


class _ImportedFiles:
    """Finds modules among the imported files; behind all other finders, so that it hides no module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for file in _files() if path is None else ():
            if file.stem == name:
                return importlib.util.spec_from_file_location(name, file)
        return None


def _files() -> list[Path]:
    return [Path(text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]


def _check(file: Path) -> None:
    """Refuse a file that cannot be imported under its own name."""
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise InputError(FLAG, None, f"{file}: expected a Python file such as steady.py")
    if not file.is_file():
        raise InputError(FLAG, None, f"{file}: no such file")
    loaded = sys.modules.get(file.stem)
    spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec(file.stem)
    origin = getattr(spec, "origin", None) or getattr(loaded, "__file__", None)
    if (loaded is not None or spec is not None) and (origin is None or Path(origin).absolute() != file):
        raise InputError(
            FLAG, None, f"{file}: {file.stem!r} is the name of another module, {origin or 'built in'}"
        )


def _line_of(error: BaseException, file: Path) -> str:
    """``:LINE`` of the file where an exception left it; empty where it did not pass there."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}" if error.lineno else ""
    line, step = "", error.__traceback__
    while step is not None:
        if Path(step.tb_frame.f_code.co_filename) == file:
            line = f":{step.tb_lineno}"
        step = step.tb_next
    return line
