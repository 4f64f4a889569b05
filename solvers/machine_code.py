"""Machine code that numba compiles once per installation, and that runs without numba from then on.

To import numba and to make it ready for what it has kept takes half a second of every process; an object file
is loaded in some milliseconds by llvmlite alone.  It has to be complete for that: a function that allocates
nothing, raises nothing, and calls nothing but the C library; other code runs where it was compiled, and is
not kept.  A file is run where nobody else can have written it (:mod:`tilewright.formulation.trust`): its name
tells what it was made from and for which processor, its first bytes the digest of the rest.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.formulation import trust
from tilewright.formulation.caches import code_folders, is_writable

_ENTRY = "tilewright_entry"
_DIGEST = 32  # bytes

Compile = Callable[[], Any]
"""Makes what ``numba.cfunc`` makes of a function."""


class IncompleteCodeError(RuntimeError):
    """The code needs something of numba where it runs."""


@dataclass
class MachineCode:
    """A function as machine code, compiled by the first process that needs it.

    Parameters
    ----------
    name : of the file
    compile : what numba makes of the function; called where nothing is kept
    sources : what it is compiled from
    arguments : types of its arguments, addresses and numbers alone; it returns a 64-bit integer
    """

    name: str
    compile: Compile
    sources: Sequence[Path]
    arguments: Sequence[Any]
    _engines: list[Any] = field(default_factory=list)  # the code is gone with them

    @property
    def kept(self) -> Path | None:
        """The file that holds it, whole and for this processor."""
        return next((place[0] for place in self._places() if _read(*place) is not None), None)

    @property
    def folder(self) -> Path | None:
        """Where it is kept, or would be; ``None`` where there is no room."""
        kept = self.kept
        if kept is not None:
            return kept.parent
        places = ((file.parent, module) for file, module in self._places())
        return next((folder for folder, module in places if is_writable(folder, module)), None)

    def load(self) -> Callable[..., int]:
        """The function; compiled at first, for some seconds, and kept if it is complete and there is room."""
        for place in self._places():
            code = _read(*place)
            if code is not None:
                return self._loaded(code)
        compiled = self.compile()
        try:
            code = _object_code(compiled)
        except IncompleteCodeError:  # of another version of numba; each process compiles
            self._engines.append(compiled)
            return ctypes.CFUNCTYPE(ctypes.c_int64, *self.arguments)(compiled.address)
        function = self._loaded(code)
        for file, module in self._places():
            if trust.write(file, hashlib.sha256(code).digest() + code, module):
                break
        return function

    def _places(self) -> Iterator[tuple[Path, Path | None]]:
        """Files where it may be kept, with the module that they lie beside."""
        digest = hashlib.sha256(repr(_processor()).encode())
        for source in self.sources:
            digest.update(source.read_bytes())
        name = f"{self.name}-{digest.hexdigest()[:24]}.code"
        for folder, module in code_folders(self.sources[0]):
            yield folder / name, module

    def _loaded(self, code: bytes) -> Callable[..., int]:
        import llvmlite.binding as llvm

        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._engines.append(engine)
        result, nothing = ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, result, nothing, *self.arguments)
        native = prototype(engine.get_function_address(_ENTRY))

        def function(*arguments: Any) -> int:
            found = ctypes.c_int64()
            status = native(found, None, *arguments)
            if status:
                raise RuntimeError(f"{self.name}: status {status}")
            return found.value

        return function


def _processor() -> tuple[str, ...]:
    """What machine code depends on besides its sources."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return llvmlite.__version__, llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _, triple, name, features = _processor()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=name, features=features, opt=3, codemodel="jitdefault")


def _object_code(function: Any) -> bytes:
    """The object file of a compiled function and what it calls, without the door that Python uses.

    Raises
    ------
    IncompleteCodeError : where it calls what only numba has
    """
    import llvmlite.binding as llvm

    machine = _target_machine()
    module = llvm.parse_assembly(function.inspect_llvm())
    door = function.native_name
    inner = [
        one
        for one in module.functions
        if not one.is_declaration and one.linkage is llvm.Linkage.external and one.name != door
    ]
    if len(inner) != 1:
        raise IncompleteCodeError(f"{len(inner)} functions where one was expected")
    inner[0].name = _ENTRY
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration and one.name != _ENTRY:
            one.linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    library = ctypes.CDLL(None)
    for one in module.functions:
        if one.is_declaration and not one.name.startswith("llvm.") and not hasattr(library, one.name):
            raise IncompleteCodeError(f"the code calls {one.name}")
    code: bytes = machine.emit_object(module)
    return code


def _read(file: Path, module: Path | None) -> bytes | None:
    """The code in a file; ``None`` where there is none, or it is not what was written."""
    content = trust.read(file, module) or b""
    code = content[_DIGEST:]
    return code if code and hashlib.sha256(code).digest() == content[:_DIGEST] else None
