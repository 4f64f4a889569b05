"""Models as verbs read them: with what the user says of an ONNX file, and with what is left out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.api.mapping.network import Network
    from tilewright.workloads.onnx.options import OnnxOptions


def loaded(text: str, batch: int | None, options: OnnxOptions, *, quiet: bool = False) -> Network:
    """The network that a MODEL text stands for.

    Parameters
    ----------
    batch : samples; ``None`` for the model's own number
    options : what the user says of an ONNX file
    quiet : do not list on stderr what is left out

    Raises
    ------
    InputError : for any fault of the text, of the file or of the options
    """
    from tilewright.api.mapping.network import Network
    from tilewright.cli.terminal.console import note_line
    from tilewright.workloads.catalog import resolve_model

    network = Network(resolve_model(text, batch, options))
    if not quiet:
        for reason in network.left_out:
            note_line(f"left out: {reason}")
    return network
