"""Registries: entries by name, each with its description and source, imported when first asked for.

A registry knows what ships with the package, what a program adds while it runs, and the entry points that
installed packages have in its group.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.extensions import Extension, extensions, is_importing, load_imported
from tilewright.foundation.extras import Extra
from tilewright.foundation.method_text import MethodText, parse_method
from tilewright.foundation.options import options_text, with_options

Kind = TypeVar("Kind")

_OWN: list[str] = []
"""Names that this process has registered, of whatever kind."""


def own_names(texts: Iterable[str]) -> list[str]:
    """Of some texts such as ``climbing[steps=9]``, the names that other processes do not know.

    Parameters
    ----------
    texts : of methods, and names of cost models
    """
    if not _OWN:
        return []
    return [name for name in (text.partition("[")[0].strip() for text in texts) if name in _OWN]


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered class.

    Parameters
    ----------
    module, attribute : where it is
    about : in one line
    source : where it was published, if it was
    package : name and version of the installed package that brings it as an entry point; else empty
    extra : without whose library it cannot run
    """

    module: str
    attribute: str
    about: str = ""
    source: str = ""
    package: str = ""
    extra: Extra | None = None


class Registry(Generic[Kind]):
    """Classes by name; their options stand in brackets behind it: ``dmazerunner[opt=1-2]``.

    Parameters
    ----------
    flag : under which users name one
    entries : in the sequence in which they are shown
    synonyms : other names that users may write for some of them; nothing shows these
    group : of the entry points by which installed packages add to it; empty for none
    """

    def __init__(
        self,
        flag: str,
        entries: MappingABC[str, Entry],
        synonyms: MappingABC[str, str] | None = None,
        group: str = "",
    ) -> None:
        self._flag = flag
        self._entries = dict(entries)
        self._synonyms = dict(synonyms or {})
        self._group = group

    def names(self) -> list[str]:
        """All names, in the sequence in which they are shown: the package's own, then what was added."""
        self._extend()
        return [*self._entries]

    def ships(self, name: str) -> bool:
        """Whether a name is known without a look at imported files and installed packages."""
        return self._has(name)

    def __contains__(self, name: object) -> bool:
        if not self._has(name):
            self._extend()
        return self._has(name)

    def add(self, name: str, entry: Entry) -> None:
        """Register one more class, for as long as the process lives.

        What ships with the package stands in the registries' modules; a program of its own adds to them::

            HEURISTICS.add("climbing", Entry("my_package.climbing", "Climbing", "Hill climbing"))

        Raises
        ------
        ValueError : for a name that is taken, or one that users could not write
        """
        if parse_method(name, self._flag).name != name:
            raise ValueError(f"{name!r} is no name: expected letters, digits, - and _")
        if self._has(name):
            raise ValueError(f"{name!r} is registered: {self._entries[self._synonyms.get(name, name)].about}")
        self._entries[name] = entry
        if not is_importing():  # workers import the same files
            _OWN.append(name)

    def remove(self, name: str) -> None:
        """Take a name out again; raises ``KeyError`` where it is not there."""
        del self._entries[name]
        with suppress(ValueError):
            _OWN.remove(name)

    def entry(self, name: str) -> Entry:
        """What is registered under a name; raises ``KeyError``."""
        if not self._has(name):
            self._extend()
        return self._entries[self._synonyms.get(name, name)]

    def make(self, text: str | MethodText, flag: str = "") -> Kind:
        """The object that a user's text names.

        Raises
        ------
        InputError : for an unknown name or option, a value that an option cannot have, or an installed
            package that does not load
        """
        flag = flag or self._flag
        read = parse_method(text, flag) if isinstance(text, str) else text
        if read.name not in self:
            raise InputError(flag, None, unknown_name(read.name, self.names()))
        made: Kind = with_options(self._loaded(read.name), read, flag)
        return made

    def ready(self, text: str | MethodText, flag: str = "") -> Kind:
        """The object that a user's text names, which is about to run.

        Raises
        ------
        InputError : as for `make`, and where the library is missing that it needs
        """
        made = self.make(text, flag)
        flag = flag or self._flag
        name = (parse_method(text, flag) if isinstance(text, str) else text).name
        extra = self.entry(name).extra
        if extra is not None and not extra.is_installed:
            raise extra.missing(flag, name)
        return made

    def options(self, name: str) -> str:
        """Names, defaults and meanings of the options in one line; empty for none."""
        return options_text(self._loaded(name))

    def _has(self, name: object) -> bool:
        return name in self._entries or name in self._synonyms

    def _extend(self) -> None:
        """Add what imported files and installed packages bring; a name that is taken stays what it is."""
        load_imported()
        if self._group:
            for name, extension in extensions(self._group).items():
                if not self._has(name):
                    about, package = f"from {extension.package}", extension.package
                    self._entries[name] = Entry(extension.module, extension.attribute, about, package=package)

    def _loaded(self, name: str) -> type[Any]:
        entry = self.entry(name)
        if entry.package:
            added: type[Any] = cast(Any, Extension(name, entry.module, entry.attribute, entry.package).load())
            return added
        shipped: type[Any] = getattr(import_module(entry.module), entry.attribute)
        return shipped
