"""Tensor-centric directives (KAPLA, section III-B): a mapping described from the PEs outwards."""

from tilewright.formulation.mapping.directives.counts import access_counts
from tilewright.formulation.mapping.directives.model import Directives, Stack, TensorAxis, TensorTile, Update
from tilewright.formulation.mapping.directives.text import parse_directives, write_directives

__all__ = [
    "Directives",
    "Stack",
    "TensorAxis",
    "TensorTile",
    "Update",
    "access_counts",
    "parse_directives",
    "write_directives",
]
