"""The cases of `beside_accelforge`: layers, machines and objectives, and a layer as AccelForge's YAML."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Axis, Operator, Role

MACHINES = Path(__file__).parent / "machines"
RENAMES = {Role.INPUT: "input", Role.WEIGHT: "weight", Role.OUTPUT: "output"}
"""AccelForge's names of the tensors that a machine's rules speak of."""


@dataclass(frozen=True, slots=True)
class Case:
    """A layer on a machine, and what is minimised.

    Parameters
    ----------
    about : what the layer is, in a word
    layer : as the command line takes it
    machine : a file of ``studies/machines`` without its suffixes
    objective : ``energy``, ``cycles`` or ``edp``
    """

    about: str
    layer: str
    machine: str
    objective: str

    @property
    def operator(self) -> Operator:
        """The layer."""
        return parse_layer(self.layer)[1]

    @property
    def file(self) -> Path:
        """The machine in AccelForge's format."""
        return MACHINES / f"{self.machine}.accelforge.yaml"


BERT = "gemm:M=512,N=768,K=768"
SMALL = "gemm:M=64,N=64,K=64"
CASES = (
    Case("product", BERT, "nvdla", "energy"),
    Case("product", BERT, "nvdla", "edp"),
    Case("product", "gemm:M=2048,N=12288,K=12288", "nvdla", "edp"),
    Case("product", BERT, "simple", "energy"),
    Case("product", SMALL, "toy", "edp"),
    Case("product", SMALL, "eyeriss", "edp"),
    Case("product", "gemm:M=512,N=3072,K=768", "tpu", "edp"),
    Case("3x3", "conv:K=64,C=64,P=28,Q=28,R=3,S=3", "nvdla", "edp"),
    Case("1x1", "conv:K=256,C=64,P=14,Q=14,R=1,S=1", "eyeriss", "energy"),
    Case("1x1", "conv:K=256,C=64,P=14,Q=14,R=1,S=1", "toy", "cycles"),
    Case("depthwise", "depthwise:C=32,P=14,Q=14,R=3,S=3", "simple", "energy"),
    Case("attention", "matmul:B=12,M=512,N=512,K=64", "tpu", "energy"),
)


def workload_text(operator: Operator) -> str:
    """A layer as AccelForge's YAML; dimensions of one iteration are left out.

    AccelForge writes an index of a tensor as a sum of rank variables, which are dimensions in lower case.
    """
    bounds = {dim: bound for dim, bound in operator.bounds.items() if bound > 1}
    lines = ["workload:", "  iteration_space_shape:"]
    lines += [f"    {dim.lower()}: 0 <= {dim.lower()} < {bound}" for dim, bound in bounds.items()]
    lines += ["  bits_per_value: {All: 8}", "  einsums:", "  - name: Layer", "    tensor_accesses:"]
    for tensor in operator.tensors:
        ranks = ", ".join(
            f"{name}: {index}" for name, index in _ranks(tensor.axes, bounds) if index is not None
        )
        output = ", output: True" if tensor.role is Role.OUTPUT else ""
        lines.append(f"    - {{name: {tensor.name}, projection: {{{ranks}}}{output}}}")
    names = ", ".join(f"{RENAMES[tensor.role]}: {tensor.name}" for tensor in operator.tensors)
    lines.append(f"    renames: {{{names}}}")
    return "\n".join(lines) + "\n"


def _ranks(axes: Sequence[Axis], bounds: dict[str, int]) -> list[tuple[str, str | None]]:
    """The name of every axis of a tensor, and its index; ``None`` where it is always 0."""
    ranks: list[tuple[str, str | None]] = []
    for axis in axes:
        terms = [term for term in axis.terms if term.dim in bounds]
        name = "".join(term.dim for term in terms)
        parts = [
            term.dim.lower() if term.stride == 1 else f"{term.stride} * {term.dim.lower()}" for term in terms
        ]
        ranks.append((name, " + ".join(parts) or None))
    return ranks


class _Loader(yaml.SafeLoader):
    """Reads AccelForge's nodes as mappings that know their tag."""


def _tagged(loader: _Loader, tag: str, node: yaml.Node) -> dict[Hashable, object]:
    assert isinstance(node, yaml.MappingNode)
    return {**loader.construct_mapping(node, deep=True), "kind": tag}


_Loader.add_multi_constructor("!", _tagged)


def containers_of(machine: Path) -> tuple[dict[str, str], str]:
    """By array axis the component that has it, and the component that computes, of a file of AccelForge."""
    nodes = yaml.load(machine.read_text(), _Loader)["arch"]["nodes"]
    axes = {axis["name"]: node["name"] for node in nodes for axis in node.get("spatial", ())}
    return axes, next(node["name"] for node in nodes if node["kind"] == "Compute")
