"""Kinds of layers of today's networks, by how their names end."""

from __future__ import annotations

import re

KINDS = {
    "attention": r"(?<!mixer)\.(scores|mix)$",
    "softmax": r"softmax$",
    "cache": r"\.append_\w+$",
    "feed-forward": r"(forward|experts|expert)\.(gate|up|down)\d*$|\.router$|\.feed_(up|down)$",
    "projections": r"attention\.(query|key|value|result|latent)(_\w+)?$|\.(branches|vectors|step|result)$",
    "words": r"(^|\.)words_out$",
}
"""What names end in; layers of no such name are norms, sums, activations and rotary embedding."""
POINTWISE = r"_(norm|rotary|act)$"
OTHERS = "others"


def kind_of(name: str) -> str:
    """The kind of a layer, by its name."""
    if re.search(POINTWISE, name):
        return OTHERS
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, name)), OTHERS)
