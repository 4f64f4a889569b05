"""Layer texts and layer files: meaning, and one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.layer_fields import KINDS
from tilewright.workloads.mapping.layer_text import is_layer_text, parse_layer, read_layers
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import (
    conv2d,
    depthwise_conv2d,
    elementwise,
    fully_connected,
    gemm,
    matmul,
    nest,
    pool2d,
    transposed_conv2d,
)

SIZE = st.integers(1, 600)


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        (
            "conv:N=4,K=512,C=512,P=7,Q=7,R=3,S=3,stride=1,pad=1",
            conv2d(n=4, k=512, c=512, p=7, q=7, r=3, s=3, pad=1),
        ),
        (
            "conv: N=4, K=64, C=3, H=224, W=224, R=7, S=7, stride=2, pad=3",
            conv2d(n=4, k=64, c=3, h=224, w=224, r=7, s=7, stride=2, pad=3),
        ),
        (
            "conv:K=8,C=4,H=9,W=9,R=3,S=1,stride=2x1,dilation=1x2,pad=0x0x1x1,groups=2",
            conv2d(k=8, c=4, h=9, w=9, r=3, s=1, stride=(2, 1), dilation=(1, 2), pad=(0, 0, 1, 1), groups=2),
        ),
        ("depthwise:C=32,P=14,Q=14,R=3,S=3", depthwise_conv2d(c=32, p=14, q=14, r=3, s=3)),
        ("tconv:K=8,C=4,P=7,Q=7,R=4,S=4,stride=2", transposed_conv2d(k=8, c=4, p=7, q=7, r=4, s=4, stride=2)),
        (
            "pool:C=64,H=112,W=112,R=3,S=3,stride=2,pad=1",
            pool2d(c=64, h=112, w=112, r=3, s=3, stride=2, pad=1),
        ),
        ("pool:C=64,H=7,W=7", pool2d(c=64, h=7, w=7)),
        ("gemm:M=512,N=768,K=768", gemm(m=512, n=768, k=768)),
        ("matmul:B=12,M=8,N=8,K=4", matmul(batch=12, m=8, n=8, k=4)),
        ("fc:N=4,K=10,C=20", fully_connected(n=4, k=10, c=20)),
        ("elementwise:N=2,K=8,P=3,Q=3", elementwise(shape=(2, 8, 3, 3))),
        ("nest:O[i]+=W[i,j]*I[j]: i=3,j=4", nest("O[i]+=W[i,j]*I[j]: i=3,j=4")),
    ],
)
def test_a_text_means_what_its_builder_builds(text: str, operator: Operator) -> None:
    """Every kind of layer text gives the operator of the builder that it stands for."""
    assert is_layer_text(text)
    assert parse_layer(text) == (text.partition(":")[0], operator)


@settings(max_examples=effort(50), deadline=None)
@given(SIZE, SIZE, SIZE, SIZE, SIZE, st.integers(1, 7), st.integers(1, 4), st.randoms())
def test_fields_come_in_any_order(
    n: int, k: int, c: int, p: int, q: int, r: int, stride: int, random: st.DataObject
) -> None:
    """A convolution reads the same whatever the order of its fields."""
    fields = [f"N={n}", f"K={k}", f"C={c}", f"P={p}", f"Q={q}", f"R={r}", f"S={r}", f"stride={stride}"]
    random.shuffle(fields)  # type: ignore[attr-defined]
    _, operator = parse_layer("conv:" + ",".join(fields))
    assert operator == conv2d(n=n, k=k, c=c, p=p, q=q, r=r, s=r, stride=stride)


@settings(max_examples=effort(300), deadline=None)
@given(
    st.sampled_from([*KINDS, "convx", ""]), st.text(alphabet="NKCPQRSMHWB=,x-0123456789 :pad.", max_size=60)
)
def test_any_text_is_a_layer_or_an_input_error(kind: str, rest: str) -> None:
    """No text fails in any other way than by a one-line input error that begins with the text."""
    text = f"{kind}:{rest}"
    caught: list[InputError] = []
    try:
        name, operator = parse_layer(text)
    except InputError as error:
        caught.append(error)
    if caught:
        assert caught[0].where == text
        assert "\n" not in str(caught[0])
    else:
        assert name == kind
        assert operator.iterations >= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conv", "expected kind:field=value"),
        ("cnv:K=1", "kind: unknown name 'cnv', did you mean 'conv'?"),
        ("conv:K=1,C=1,P=1,Q=1,R=1", "S: missing"),
        ("gemm:M=1,N=1", "K: missing"),
        ("gemm:M=1,N=1,K=2,strid=3", "unknown name 'strid' (expected one of: name, M, N, K)"),
        ("conv:K=1,C=1,P=1,Q=1,R=1,S=1,strides=2", "unknown name 'strides', did you mean 'stride'?"),
        ("gemm:m=1,N=1,K=2,M=3", "unknown name 'm', did you mean 'M'?"),
        ("gemm:M=1,N=1,K=0", "K: expected at least 1, got 0"),
        ("gemm:M=1,N=1,K=-4", "K: expected at least 1, got -4"),
        ("gemm:M=1,N=1,K=2.5", "K: expected an integer (or several, such as 2x1), got '2.5'"),
        ("gemm:M=1,N=1,K=2x3", "K: expected an integer, got [2, 3]"),
        ("gemm:M=1,N=1,K=4294967296", "K: expected at most 2147483647, got 4294967296"),
        ("gemm:M=1,N=1,K", "expected field=value, got 'K'"),
        ("gemm:M=1,M=1,N=1,K=1", "M: given twice"),
        ("conv:K=1,C=1,P=1,Q=1,R=1,S=1,stride=1x2x3", "stride: expected at most 2 entries, got [1, 2, 3]"),
        ("conv:K=1,C=1,P=1,Q=1,R=1,S=1,stride=0", "stride: expected at least 1, got 0"),
        ("conv:K=1,C=1,P=1,Q=1,R=1,S=1,pad=1x1x1", "pad: expected 1, 2 or 4 numbers, got 3"),
        ("conv:K=1,C=1,P=2,H=2,Q=1,R=3,S=1", "R: the kernel spans 3 elements, the padded input has only 2"),
        ("conv:K=3,C=2,P=1,Q=1,R=1,S=1,groups=2", "groups: 2 does not divide K=3"),
        ("nest:O[i] += W[j]", "i: missing bound"),
        ("nest:O[i += W[j]", "column 5: expected ',' or ']', found '+='"),
    ],
)
def test_errors_name_the_text_the_field_and_the_expectation(text: str, message: str) -> None:
    """Bad texts are told in one line that begins with the text itself."""
    with pytest.raises(InputError) as caught:
        parse_layer(text)
    assert str(caught.value).startswith(f"{text}: {message}")


def test_the_batch_fills_in_but_does_not_override() -> None:
    """A batch is N where the text is silent; a contradiction, or a kind without batch, is an error."""
    text = "conv:K=1,C=1,P=1,Q=1,R=1,S=1"
    assert parse_layer(text, batch=8)[1].bounds["N"] == 8
    assert parse_layer(text + ",N=8", batch=8)[1].bounds["N"] == 8
    with pytest.raises(InputError, match="N: 4 contradicts the batch 8"):
        parse_layer(text + ",N=4", batch=8)
    with pytest.raises(InputError, match="gemm layer has no batch loop"):
        parse_layer("gemm:M=1,N=1,K=1", batch=8)
    assert parse_layer("gemm:M=2,N=3,K=4", batch=1)[1].bounds == {"M": 2, "N": 3, "K": 4}


def test_a_layer_can_be_named() -> None:
    """The field name names the layer, which is otherwise called by its kind."""
    assert parse_layer("gemm:M=1,N=1,K=1,name=classifier")[0] == "classifier"


def test_a_yaml_file_holds_texts_and_mappings(tmp_path: Path) -> None:
    """A file lists layers as texts or mappings, and repeated names are numbered."""
    path = tmp_path / "layers.yaml"
    path.write_text(
        "- gemm:M=1,N=2,K=3\n"
        "- {kind: gemm, M: 4, N: 5, K: 6}\n"
        "- {kind: conv, name: stem, K: 8, C: 3, H: 9, W: 9, R: 3, S: 3, stride: [2, 1], pad: 1}\n"
    )
    layers = read_layers(path)
    assert [name for name, _ in layers] == ["gemm", "gemm#2", "stem"]
    assert layers[2][1] == conv2d(k=8, c=3, h=9, w=9, r=3, s=3, stride=(2, 1), pad=1)
    path.write_text("kind: pool\nC: 4\nH: 2\nW: 2\n")
    assert read_layers(path, batch=3) == (("pool", pool2d(n=3, c=4, h=2, w=2)),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("[]", "expected at least one layer"),
        ("a: [1", "line 1, column 6: not valid YAML"),
        ("kind: gemm\nM: 1\nM: 2\n", "line 3, column 1: not valid YAML: the key 'M' is given twice"),
        ("- 3", "layer 1: expected a layer text or a mapping"),
        ("- gemm:M=1,N=1,K=1\n- gemm:M=1,N=1,K=0\n", "layer 2: gemm:M=1,N=1,K=0: K: expected at least 1"),
        ("M: 1", "kind: missing, expected one of: conv"),
        ("kind: gem", "kind: unknown name 'gem', did you mean 'gemm'?"),
        ("{kind: gemm, M: 1, N: 1, K: many}", "K: expected an integer, got 'many'"),
        ("{kind: gemm, M: 1, N: 1, K: true}", "K: expected an integer, got True"),
        ("{kind: gemm, M: 1, N: 1, K: 1.5}", "K: expected an integer, got 1.5"),
        ("{kind: gemm, M: 1, N: 1, K: 1, 5: 2}", "expected a layer text or a mapping"),
        ("!!python/object:os.system {}", "line 1, column 1: not valid YAML"),
        ("x: &a [*a]", "an alias stands inside what it repeats"),
    ],
)
def test_bad_files_are_told_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    """Bad files are told by file, place and expectation."""
    path = tmp_path / "layers.yaml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_layers(path)
    told = str(caught.value)
    assert told.startswith(str(path))
    assert message in told
    assert "\n" not in told


def test_unreadable_files_are_told(tmp_path: Path) -> None:
    """A missing file, a folder and a binary file are input errors."""
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_layers(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="cannot be read: a folder"):
        read_layers(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(InputError, match="UTF-8"):
        read_layers(tmp_path / "binary.yaml")
