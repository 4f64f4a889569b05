"""A worker process: what runs in it, and how it is spoken to.

Run by its path, it loads the package that it lies in, from there and nowhere else.  A request is a function
of a module with its arguments, an answer what the function returns or raises; both are pickles behind their
length, on standard input and output.  The program that was started in the parent is not run again: what is
in it is known here only where it is a module of this package.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, BinaryIO

_LENGTH = 8  # bytes
_MAIN = "__main__"
_PACKAGE = "tilewright"
_STUDIES = "studies"
"""The package beside the source tree whose programs measure this one; a clone has it, no installation."""


class _Unpickler(pickle.Unpickler):
    """Takes names of one module from another one.

    Parameters
    ----------
    renamed : the module that names of some modules are taken from
    """

    def __init__(self, content: bytes, renamed: dict[str, str]) -> None:
        super().__init__(io.BytesIO(content))
        self._renamed = renamed

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        module = self._renamed.get(module_name, module_name)
        if module == "":
            raise pickle.UnpicklingError(
                f"{global_name} stands in the program that was started, which worker processes do not run: "
                "move it to a module that they can import"
            )
        return super().find_class(module, global_name)


def main_module() -> str:
    """The name of the module of this package that was started as the program; empty where it is another."""
    spec = getattr(sys.modules.get(_MAIN), "__spec__", None)
    name = "" if spec is None else str(spec.name)
    return name if name.partition(".")[0] in (_PACKAGE, _STUDIES) else ""


def first_message() -> bytes:
    """What a worker receives first: the program that was started, and where the studies lie if in use."""
    studies = sys.modules.get(_STUDIES)
    folder = "" if studies is None else str(Path(studies.__file__ or "").parent)
    return json.dumps([main_module(), folder]).encode()


def send(stream: BinaryIO, content: bytes) -> None:
    """Write a message."""
    stream.write(len(content).to_bytes(_LENGTH, "big") + content)
    stream.flush()


def receive(stream: BinaryIO) -> bytes:
    """Read a message; raises ``EOFError`` where the other side is gone."""
    length = stream.read(_LENGTH)
    content = stream.read(int.from_bytes(length, "big")) if len(length) == _LENGTH else b""
    if len(length) < _LENGTH or len(content) < int.from_bytes(length, "big"):
        raise EOFError
    return content


def opened(content: bytes) -> Any:
    """An answer, in the parent."""
    name = main_module()
    return _Unpickler(content, {name: _MAIN} if name else {}).load()


def serve() -> None:
    """Answer requests until the parent has hung up; then nothing is finished."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(2, 1)  # what is printed must not reach the answers
    os.close(empty)
    from tilewright.foundation.extensions import install_finder

    for name in ("SIGINT", "SIGHUP"):  # the terminal's signals are for the parent to handle
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # end at once, whatever is being computed
    install_finder()
    main, studies = json.loads(receive(requests))
    if studies:
        _load_package(_STUDIES, Path(studies))
    renamed = {_MAIN: main}
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        while True:
            try:
                arrived.put(receive(requests))
            except (EOFError, OSError):
                os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        send(answers, _answer(arrived.get(), renamed))


def _answer(content: bytes, renamed: dict[str, str]) -> bytes:
    """A pickle of whether a request was carried out, and what it returned or raised."""
    try:
        function, arguments = _Unpickler(content, renamed).load()
        return pickle.dumps((True, function(*arguments)))
    except BaseException as error:
        try:
            failure = pickle.dumps((False, error))
            pickle.loads(failure)
        except Exception:
            failure = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return failure


def _load_package(name: str, folder: Path) -> None:
    """Import a package from its folder, whatever else bears its name."""
    spec = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


if __name__ == "__main__":
    _load_package(_PACKAGE, Path(sys.argv[0]).parents[1])
    begin: Callable[[], None] = import_module("tilewright.foundation.worker").serve
    begin()
