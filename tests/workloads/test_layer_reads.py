"""Files of layers that say which operands are results of other layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.formulation.mapping.fused.group import Reading, group_of
from tilewright.foundation.errors import InputError
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.network import Network


def read(tmp_path: Path, *entries: str) -> Network:
    path = tmp_path / "layers.yaml"
    path.write_text("".join(f"- {entry}\n" for entry in entries))
    return resolve_model(str(path))


def test_operands_are_linked_to_results(tmp_path: Path) -> None:
    """Links have producer, operand, axes and elements; other operands come from outside."""
    network = read(
        tmp_path,
        '{name: qk, layer: "matmul:B=2,M=4,N=6,K=3"}',
        '{name: av, layer: "matmul:B=2,M=4,N=3,K=6", reads: {A: qk}}',
        '{name: va, layer: "matmul:B=2,M=6,N=3,K=4", reads: {A: {layer: qk, axes: [0, 2, 1]}}}',
    )
    assert [(link.producer, link.consumer, link.operand, link.axes) for link in network.links] == [
        ("qk", "av", "A", (0, 1, 2)),
        ("qk", "va", "A", (0, 2, 1)),
    ]
    assert {link.elements for link in network.links} == {48}
    assert network.outputs == {"av", "va"}
    group = group_of(network, ["qk", "av"])
    assert group.readings == (Reading("av", "A", "qk", (0, 1, 2), (0, 0, 0)),)
    assert group.leaving == {"qk", "av"}
    assert group.ranks["qk", "N"] == group.ranks["av", "K"]
    assert group.ranks["qk", "K"] != group.ranks["av", "K"]


def test_padding_of_a_reader_is_its_offset(tmp_path: Path) -> None:
    """Rows and columns of a padded window begin before the result, by as many as the layer's own pad."""
    network = read(
        tmp_path,
        '{name: a, layer: "conv:K=4,C=2,P=6,Q=6,R=1,S=1"}',
        '{name: b, layer: "depthwise:C=4,H=6,W=6,R=3,S=3,pad=1x0x1x2", reads: {I: a}}',
        "{kind: conv, name: c, K: 2, C: 4, P: 6, Q: 6, R: 1, S: 1, reads: {I: b}}",
    )
    assert [link.offsets for link in network.links] == [(0, 0, 1, 0), (0, 0, 0, 0)]
    assert group_of(network).leaving == {"c"}


def test_files_without_reads_are_not_linked(tmp_path: Path) -> None:
    """Layers without ``reads`` stay without links, whatever their sizes."""
    assert not read(tmp_path, "gemm:M=4,N=4,K=4", "gemm:M=4,N=4,K=4").links


@pytest.mark.parametrize(
    ("reads", "told"),
    [
        ("nobody", "reads: expected operands and layers"),
        ("{Z: a}", "reads.Z: unknown name 'Z'"),
        ("{A: z}", "reads.A: unknown name 'z'"),
        ("{A: b}", "reads.A: b reads itself"),
        ("{A: 3}", "reads.A: expected the name of a layer, got 3"),
        ("{A: {axes: [0, 1]}}", "reads.A: expected the name of a layer, got None"),
        ("{A: {layer: a, axes: [0, 0]}}", "reads.A.axes: expected each of 0 to 1 once"),
        ("{A: {layer: a, axes: [0]}}", "reads.A.axes: expected 2 numbers"),
        ("{A: {layer: a, axes: [0, true]}}", "reads.A.axes: expected a list of whole numbers"),
        ("{A: {layer: a, offsets: [0, -1]}}", "reads.A.offsets: expected a list of 2 whole numbers"),
        ("{A: {layer: a, rows: [1], softmax: 3}}", "reads.A.softmax: expected true or false, got 3"),
        ("{A: {layer: a, turned: true}}", "reads.A.turned: unknown name 'turned'"),
    ],
)
def test_errors_name_the_field(tmp_path: Path, reads: str, told: str) -> None:
    """A wrong entry gives one line with the file, the layer and the field."""
    with pytest.raises(InputError) as raised:
        read(
            tmp_path,
            '{name: a, layer: "gemm:M=4,N=6,K=3"}',
            f'{{name: b, layer: "gemm:M=4,N=3,K=6", reads: {reads}}}',
        )
    assert "layers.yaml: layer 2" in str(raised.value)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("reader", "told"),
    [
        (
            "conv:K=2,C=8,P=8,Q=8,R=3,S=3,pad=1",
            "axis 1 of the result of a has 4 elements, the operand needs 8",
        ),
        (
            "conv:K=2,C=3,P=8,Q=8,R=3,S=3,pad=1",
            "axis 1 of the result of a has 4 elements, the operand only 3",
        ),
        (
            "conv:K=2,C=4,P=4,Q=8,R=3,S=3,pad=1",
            "axis 2 of the result of a has 8 elements, the operand only 5",
        ),
        (
            "conv:K=2,C=4,P=8,Q=16,R=3,S=3,pad=1",
            "axis 3 of the result of a has 8 elements, the operand needs 15",
        ),
        ("conv:K=2,C=4,P=3,Q=8,R=2,S=1,stride=2x1", "the operand only 6"),
        ("conv:K=2,C=4,P=4,Q=8,R=1,S=1,stride=2x1", ""),
        ("conv:K=2,C=4,H=8,W=8,R=3,S=3,pad=0x0x2x2", ""),
        ("conv:K=2,C=4,H=8,W=8,R=3,S=3,stride=2,pad=0x0x1x1", ""),
        ("pool:C=4,H=8,W=8,R=3,S=3,stride=2,pad=1", ""),
    ],
)
def test_sizes_agree(tmp_path: Path, reader: str, told: str) -> None:
    """An operand has the result's sizes, but for padding and what a stride leaves unused."""
    entries = (
        '{name: a, layer: "conv:K=4,C=2,P=8,Q=8,R=1,S=1"}',
        f'{{name: b, layer: "{reader}", reads: {{I: a}}}}',
    )
    if not told:
        assert len(read(tmp_path, *entries).links) == 1
        return
    with pytest.raises(InputError) as raised:
        read(tmp_path, *entries)
    assert "layer 2: reads.I" in str(raised.value)
    assert told in str(raised.value)


def test_circles_and_counts_are_refused(tmp_path: Path) -> None:
    """Layers that read each other in a circle, and reads of several layers at once, are errors."""
    first = '{name: a, layer: "gemm:M=4,N=4,K=4", reads: {A: b}}'
    with pytest.raises(InputError, match="cycle"):
        read(tmp_path, first, '{name: b, layer: "gemm:M=4,N=4,K=4", reads: {A: a}}')
    with pytest.raises(InputError, match="for 2 layers at once"):
        read(tmp_path, "{kind: gemm, name: b, M: 4, N: 4, K: 4}", first.replace("}}", "}, count: 2}"))
