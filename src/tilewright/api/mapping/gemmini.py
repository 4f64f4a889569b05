"""Gemmini's measured runs: predicted cycles of a mapping as the public data write it."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC

from tilewright.formulation.mapping.gemmini.latency import Prediction, predict
from tilewright.formulation.mapping.gemmini.row import read_row

__all__ = ["Prediction", "predict_cycles"]


def predict_cycles(row: MappingABC[str, object]) -> Prediction:
    """Cycles of a mapping on Gemmini, as measured in RTL simulation (``docs/gemmini.md``).

    Parameters
    ----------
    row : columns by name, numbers or texts: ``mapping.mapping`` such as ``L3[WIO] K48 - L2[WI] N1 K16X -
        L1[O] C48 P16 C16X - L0[W] P8``, ``prob.*`` (``C K N P Q R S Hstride Wstride``) and, where known,
        ``arch.meshX`` (or ``arch.pe``), ``arch.mem1_entries`` and ``arch.mem2_entries``; others are not read

    Returns
    -------
    The cycles, a number with ``flags``: what of the mapping its machine cannot do, empty where it fits

    Raises
    ------
    InputError : for a missing or unreadable column
    """
    return predict(read_row(row))
