"""What users name without a path: the package's own, and YAML files of installed packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.extensions import extensions

SUFFIX = ".yaml"


class Named:
    """Things of one kind by name; of equal names, the one that ships with the package counts.

    Parameters
    ----------
    shipped : names of those that ship with the package, in the sequence in which they are shown
    group : of the entry points by which installed packages bring more; each refers to the path of a file
    """

    def __init__(self, shipped: Callable[[], list[str]], group: str) -> None:
        self.shipped = shipped
        self._group = group

    def names(self) -> list[str]:
        """All names: the package's own, then what was added."""
        return [*dict.fromkeys([*self.shipped(), *extensions(self._group)])]

    def __contains__(self, name: object) -> bool:
        return name in self.shipped() or name in extensions(self._group)

    def installed(self, name: str) -> Path:
        """The file of an installed package.

        Raises
        ------
        InputError : for an unknown name, with the nearest one, and for a package that does not load
        """
        added = extensions(self._group)
        if name not in added:
            raise InputError(name, None, unknown_name(name, self.names()))
        return added[name].path()


class NamedFiles(Named):
    """Things whose own ones are files too.

    Parameters
    ----------
    folder : of those that ship with the package
    group : as `Named` takes it
    """

    def __init__(self, folder: Path, group: str) -> None:
        super().__init__(lambda: sorted(path.stem for path in folder.glob(f"*{SUFFIX}")), group)
        self._folder = folder

    def path(self, name: str) -> Path:
        """Where a file lies; raises ``InputError`` as `installed` does."""
        if name in self.shipped():
            return self._folder / f"{name}{SUFFIX}"
        return self.installed(name)
