"""YAML files that users name without a path: the package's own, and those of installed packages."""

from __future__ import annotations

from pathlib import Path

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.extensions import extensions

SUFFIX = ".yaml"


class NamedFiles:
    """The files of one kind by name.

    Parameters
    ----------
    folder : of those that ship with the package
    group : of the entry points by which installed packages bring more; each refers to a path
    """

    def __init__(self, folder: Path, group: str) -> None:
        self._folder = folder
        self._group = group

    def shipped(self) -> list[str]:
        """Names of the files that ship with the package, sorted."""
        return sorted(path.stem for path in self._folder.glob(f"*{SUFFIX}"))

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self.shipped(), *extensions(self._group)})

    def __contains__(self, name: object) -> bool:
        return name in self.shipped() or name in extensions(self._group)

    def path(self, name: str) -> Path:
        """Where a file lies; of equal names, the one that ships with the package.

        Raises
        ------
        InputError : for an unknown name, with the nearest one, and for a package that does not load
        """
        if name in self.shipped():
            return self._folder / f"{name}{SUFFIX}"
        if name in extensions(self._group):
            return extensions(self._group)[name].path()
        raise InputError(name, None, unknown_name(name, self.names()))
