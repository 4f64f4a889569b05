"""The process that infers shapes: run as a script, with what it needs as arguments, the model on its input.

Arguments are the onnx package's compiled module, bytes of memory, seconds of the processor, and ``strict`` or
``lenient``.  The answer is a byte that says what it is, and the model or the reason.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader
from typing import Any

INFERRED, FAILED, FULL, MANY = b"i", b"f", b"m", b"n"


def _compiled(path: str) -> Any:
    """The compiled module alone; where that does not work, by way of the package."""
    try:
        loader = ExtensionFileLoader("onnx_cpp2py_export", path)
        specification = importlib.util.spec_from_loader("onnx_cpp2py_export", loader)
        assert specification is not None
        module = importlib.util.module_from_spec(specification)
        loader.exec_module(module)
        return module.shape_inference
    except (ImportError, AttributeError):
        import site

        site.main()
        from onnx.onnx_cpp2py_export import shape_inference

        return shape_inference


def limit(memory: int, seconds: int) -> None:
    """Bytes of memory and seconds of the processor that this process may take from here on."""
    import resource

    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or hard > most:
            with contextlib.suppress(OSError, ValueError):  # a system without this limit
                resource.setrlimit(kind, (most, hard))


def main() -> None:
    """Answer on standard output."""
    path, memory, seconds, mode = sys.argv[1:]
    strict = mode == "strict"
    model = sys.stdin.buffer.read()
    inference = _compiled(path)
    limit(int(memory), int(seconds))
    try:
        answer = INFERRED + inference.infer_shapes(model, strict, strict, True)
    except MemoryError:
        answer = FULL
    except Exception as error:
        answer = FULL if "bad_alloc" in str(error) else FAILED + str(error).encode(errors="replace")
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    main()
