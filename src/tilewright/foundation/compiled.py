"""Functions that are compiled once per installation, and run as machine code.

What a function says is translated with all that it calls (:mod:`tilewright.foundation.kernels`), for the
types of arguments that it meets, and cached as object code next to its module, or in the user's folder.  A
cached file carries the digest of all texts of which it was made: the function's own module and those that it
imports, followed through those that are compiled themselves, and the compiler's.  Where nothing can be
cached, functions are compiled by every process that needs them, and nothing fails.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, overload

from tilewright.foundation import kernels, trust
from tilewright.foundation.caches import code_folders, is_writable
from tilewright.foundation.kernels.source import Kernel, Source
from tilewright.foundation.kernels.types import KernelTypeError, Type, type_of
from tilewright.foundation.kernels.version import Version, described, result_type

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "@compiled"
_IMPORTS = re.compile(r"^from (tilewright[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_DIGEST = 32  # bytes
_LOADING = 0.05  # seconds in which what is cached is loaded


@overload
def compiled(function: Function) -> Function: ...


@overload
def compiled(*, inline: bool = ..., ieee: bool = ...) -> Callable[[Function], Function]: ...


def compiled(function: Function | None = None, *, inline: bool = False, ieee: bool = False) -> Any:
    """A function that is compiled at its first call, cached where possible; it runs without a lock.

    Parameters
    ----------
    inline : whether its statements are written into those of its callers
    ieee : whether a float divided by 0 is an infinity; otherwise it ends in ``ZeroDivisionError``
    """
    if function is None:
        return partial(compiled, inline=inline, ieee=ieee)
    return update_wrapper(CompiledFunction(Source(function, inline, ieee)), function)


class CompiledFunction(Kernel):
    """A function as machine code, for each kind of arguments that it meets.

    Parameters
    ----------
    source : of the function

    Attributes
    ----------
    versions : the machine code that has been compiled or loaded, one for each kind of arguments
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._count = source.function.__code__.co_argcount
        self._names = source.function.__code__.co_varnames[: self._count]
        self.versions: list[Version] = []
        self._compiling = threading.Lock()
        self._beside: dict[tuple[Type, ...], threading.Thread] = {}  # that compile while callers go on

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if named or len(arguments) != self._count:
            arguments = self._in_sequence(arguments, named)
        for version in self.versions:
            fits, result = version(arguments)
            if fits:
                return result
        fits, result = self._version(tuple(map(type_of, arguments)))(arguments)
        if not fits:
            raise KernelTypeError(f"{self.source.name}: arguments of an unknown kind")
        return result

    def _in_sequence(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position; raises ``TypeError`` where they are not those of the function."""
        if len(arguments) + len(named) == self._count:
            with suppress(KeyError):  # a misspelt name is reported below
                return (*arguments, *map(named.__getitem__, self._names[len(arguments) :]))
        bound = self.source.signature.bind(*arguments, **named)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    @property
    def folder(self) -> Path | None:
        """Where its machine code is cached, or would be; ``None`` where no folder can be written."""
        return next(
            (folder for folder, module in code_folders(self._file) if is_writable(folder, module)), None
        )

    def is_ready(self, arguments: tuple[Any, ...]) -> bool:
        """Whether there is machine code for arguments of these kinds; where none is, it is made beside."""
        types = tuple(map(type_of, arguments))
        if not self._has(types) and types not in self._beside:
            self._beside[types] = thread = threading.Thread(target=self._version, args=(types,), daemon=False)
            thread.start()
            thread.join(_LOADING)
        return self._has(types)

    def _has(self, types: tuple[Type, ...]) -> bool:
        return any(version.types == types for version in self.versions)

    def adopt(self, version: Version) -> None:
        """Use machine code that another process has made of the same text."""
        with self._compiling:
            if not self._has(version.types):
                self.versions.append(version)

    @property
    def is_cached(self) -> bool:
        """Whether machine code of the present text is cached, for arguments of any kind."""
        for folder, module in code_folders(self._file):
            for file in folder.glob(f"{self._name}-*.code"):
                if (trust.read(file, module) or b"")[:_DIGEST] == self._digest:
                    return True
        return False

    def _version(self, types: tuple[Type, ...]) -> Version:
        with self._compiling:
            for version in self.versions:
                if version.types == types:
                    return version
            version = self._read(types) or _completed(lambda: self._compile(types))
            self.versions.append(version)
            return version

    def _read(self, types: tuple[Type, ...]) -> Version | None:
        """Machine code of the present text as it was cached."""
        for file, module in self._places(types):
            content = trust.read(file, module) or b""
            made_of, mark, rest = content[:_DIGEST], content[_DIGEST : 2 * _DIGEST], content[2 * _DIGEST :]
            if made_of == self._digest and mark == hashlib.sha256(rest).digest():
                head, code = rest.split(b"\n", 1)
                return Version(types, result_type(head.decode()), code)
        return None

    def _compile(self, types: tuple[Type, ...]) -> Version:
        """Machine code as it is made now, and cached if the cache can be written."""
        from tilewright.foundation.kernels.code import object_code
        from tilewright.foundation.kernels.module import Module

        module = Module(self.source, types)
        code = object_code(module.text())
        rest = described(module.result).encode() + b"\n" + code
        content = self._digest + hashlib.sha256(rest).digest() + rest
        for file, beside in self._places(types):
            if trust.write(file, content, beside):
                break
        return Version(types, module.result, code)

    @property
    def _digest(self) -> bytes:
        return digest_of(self.source.function.__module__)

    @cached_property
    def _file(self) -> Path:
        """Of the module in which it stands."""
        return Path(self.source.function.__code__.co_filename)

    @property
    def _name(self) -> str:
        return f"{self._file.stem}.{self.source.name}"

    def _places(self, types: tuple[Type, ...]) -> Iterator[tuple[Path, Path | None]]:
        """Files where machine code may be cached, with the module that they lie next to."""
        from tilewright.foundation.kernels.code import processor

        if self._file.exists():
            kind = hashlib.sha256(repr((types, processor())).encode()).hexdigest()[:24]
            for folder, module in code_folders(self._file):
                yield folder / f"{self._name}-{kind}.code", module


def _completed(work: Callable[[], Version]) -> Version:
    """What work gives that an interpreter must wait for before it ends.

    A thread of a search that was left behind ends with its interpreter, wherever it is; in the midst of the
    compiler the process would crash.
    """
    if not threading.current_thread().daemon:
        return work()
    made: list[Version] = []
    failures: list[BaseException] = []

    def kept() -> None:
        try:
            made.append(work())
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=kept, name="compiling", daemon=False)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return made[0]


@cache
def digest_of(module: str) -> bytes:
    """The digest of all texts of which a module's machine code is made, the compiler's among them."""
    digest = hashlib.sha256()
    texts = _texts(module)
    texts |= {str(path): path.read_text("utf-8") for path in Path(kernels.__file__).parent.glob("*.py")}
    for _, text in sorted(texts.items()):
        digest.update(text.encode())
    return digest.digest()


def _texts(module: str) -> dict[str, str]:
    """By name, the text of a module and of those that it imports; compiled ones are followed."""
    texts: dict[str, str] = {}
    open_modules = [module]
    while open_modules:
        name = open_modules.pop()
        path = getattr(sys.modules.get(name), "__file__", None)
        if name in texts or path is None:
            continue
        texts[name] = text = Path(path).read_text(encoding="utf-8")
        if name == module or _MARK in text:
            open_modules.extend(_imported(text))
    return texts


def _imported(text: str) -> Iterator[str]:
    """Modules of this package that a text may import: those named, and names in them that may be modules."""
    for match in _IMPORTS.finditer(text):
        yield match[1]
        for name in re.findall(r"\w+", match[2]):
            yield f"{match[1]}.{name}"


def is_cached(function: object) -> bool:
    """Whether something is a compiled function of whose present text machine code is cached."""
    return isinstance(function, CompiledFunction) and function.is_cached


def is_ready(function: object, arguments: tuple[Any, ...]) -> bool:
    """Whether a compiled function has machine code for these arguments; else it is compiled beside."""
    return isinstance(function, CompiledFunction) and function.is_ready(arguments)
