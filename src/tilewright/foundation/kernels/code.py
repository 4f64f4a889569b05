"""Object code: made by LLVM from the text of a module, and loaded into this process."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tilewright.foundation.kernels.module import ENTRY, IMPORTS, RELEASE


@cache
def processor() -> tuple[str, ...]:
    """What machine code depends on besides its text."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return llvmlite.__version__, llvm.get_process_triple(), llvm.get_host_cpu_name(), features, np.__version__


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _, triple, name, features, _ = processor()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=name, features=features, opt=2, codemodel="jitdefault")


def object_code(text: str) -> bytes:
    """What LLVM makes of a module's text."""
    import llvmlite.binding as llvm

    machine = _target_machine()
    module = llvm.parse_assembly(text)
    module.triple = processor()[1]
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


@cache
def _prepared() -> None:
    """Tell LLVM where the interpreter's functions are."""
    import llvmlite.binding as llvm

    for name in IMPORTS:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        llvm.add_symbol(name, address)


@cache
def _types() -> Any:
    """Addresses of the types that the door compares with."""
    return (ctypes.c_void_p * 3)(*(id(kind) for kind in (np.ndarray, bool, np.bool_)))


@dataclass
class Loaded:
    """Object code in this process.

    Parameters
    ----------
    code : of a module

    Attributes
    ----------
    entry : called with the arguments as a tuple, the address of the memory for the result, and that of types
    release : takes back what the arrays of a result lie in
    """

    code: bytes
    entry: Any = field(init=False)
    release: Any = field(init=False)

    def __post_init__(self) -> None:
        import llvmlite.binding as llvm

        _prepared()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(self.code))
        self._engine.finalize_object()
        pointer = ctypes.c_void_p
        prototype = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, pointer, pointer)
        self.entry = prototype(self._engine.get_function_address(ENTRY))
        self.release = ctypes.PYFUNCTYPE(None, pointer)(self._engine.get_function_address(RELEASE))
        self.types = ctypes.addressof(_types())
