"""Registries: entries by name, each with its description and source, imported when first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from tilewright.formulation.method import MethodText, parse_method
from tilewright.formulation.options import options_text, with_options
from tilewright.workloads.errors import InputError, unknown_name

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
    """

    module: str
    attribute: str
    about: str = ""
    source: str = ""


class Registry(Generic[Kind]):
    """Classes by name; their options stand in brackets behind it: ``dmazerunner[opt=1-2]``.

    Parameters
    ----------
    flag : under which users name one
    entries : in the sequence in which they are shown
    synonyms : other names that users may write for some of them; nothing shows these
    """

    def __init__(
        self, flag: str, entries: MappingABC[str, Entry], synonyms: MappingABC[str, str] | None = None
    ) -> None:
        self._flag = flag
        self._entries = dict(entries)
        self._synonyms = dict(synonyms or {})

    def names(self) -> list[str]:
        """All names, in the sequence in which they are shown."""
        return [*self._entries]

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._synonyms

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
        if name in self:
            raise ValueError(f"{name!r} is registered: {self.entry(name).about}")
        self._entries[name] = entry
        _OWN.append(name)

    def remove(self, name: str) -> None:
        """Take a name out again; raises ``KeyError`` where it is not there."""
        del self._entries[name]
        with suppress(ValueError):
            _OWN.remove(name)

    def entry(self, name: str) -> Entry:
        """What is registered under a name; raises ``KeyError``."""
        return self._entries[self._synonyms.get(name, name)]

    def make(self, text: str | MethodText, flag: str = "") -> Kind:
        """The object that a user's text names.

        Raises
        ------
        InputError : for an unknown name or option, or a value that an option cannot have
        """
        flag = flag or self._flag
        read = parse_method(text, flag) if isinstance(text, str) else text
        if read.name not in self:
            raise InputError(flag, None, unknown_name(read.name, self.names()))
        found: Kind = with_options(self._loaded(read.name), read, flag)
        return found

    def options(self, name: str) -> str:
        """Names, defaults and meanings of the options in one line; empty for none."""
        return options_text(self._loaded(name))

    def _loaded(self, name: str) -> type[Any]:
        entry = self.entry(name)
        found: type[Any] = getattr(import_module(entry.module), entry.attribute)
        return found
