"""The process that opens a model: run as a script, with what it needs as arguments, the model on its input.

Arguments are bytes of memory, seconds of the processor, and the choices as JSON.  The answer is a byte that
says what it is, and the model or the reason.
"""

from __future__ import annotations

import json
import resource
import sys

import onnx

from tilewright.workloads.onnx.inference_process import FAILED, FULL, INFERRED, MANY, limit
from tilewright.workloads.onnx.unfolding.choices import Choices, TooManyNodesError
from tilewright.workloads.onnx.unfolding.opening import open_model

_LIBRARIES = 2**31
"""Bytes of addresses that Python with its libraries takes at the most, where the system does not tell."""


def _mapped() -> int:
    """Bytes of addresses that are in use now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as pages:
            return int(pages.read().split()[0]) * resource.getpagesize()
    except OSError:
        return _LIBRARIES


def main() -> None:
    """Answer on standard output."""
    memory, seconds, choices = sys.argv[1:]
    content = sys.stdin.buffer.read()
    limit(_mapped() + int(memory), int(seconds))
    try:
        model = onnx.ModelProto.FromString(content)
        answer = INFERRED + open_model(model, Choices(**json.loads(choices))).SerializeToString()
    except MemoryError:
        answer = FULL
    except TooManyNodesError as error:
        answer = MANY + str(error).encode(errors="replace")
    except Exception as error:
        reason = str(error) or type(error).__name__
        answer = FULL if "bad_alloc" in reason else FAILED + reason.encode(errors="replace")
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    main()
