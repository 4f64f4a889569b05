"""Index notation: meaning, and errors that point at a column."""

from __future__ import annotations

import contextlib

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import conv2d

LIKE = {"m": "P", "n": "K", "k": "C"}
CONV = "O[n,k,p,q] += I[n,c,2*p+r,q*2+3*s] * W[k,c,r,s]"


def test_a_convolution_in_index_notation_equals_the_builder() -> None:
    """Strides and dilations on either side of the star give the builder's axes and roles."""
    written = nest(f"{CONV} : n=2, k=8, c=3, p=5, q=6, r=3, s=2")
    built = conv2d(n=2, k=8, c=3, p=5, q=6, r=3, s=2, stride=2, dilation=(1, 3))
    for tensor, other in zip(written.tensors, built.tensors, strict=True):
        assert (tensor.name, tensor.role) == (other.name, other.role)
        assert [axis.size for axis in tensor.axes] == [axis.size for axis in other.axes]
        strides = [[(term.dim.upper(), term.stride) for term in axis.terms] for axis in tensor.axes]
        assert strides == [[(term.dim, term.stride) for term in axis.terms] for axis in other.axes]
    assert [d.like for d in written.dimensions] == list(built.bounds)
    assert written.macs == built.macs


def test_bounds_and_likes_can_come_as_arguments() -> None:
    """Bounds and corresponding loops may be written in the line or given beside it."""
    written = nest("C[m,n] += A[m,k] * B[k,n] : m=2 as P, n=3 as K, k=4 as C")
    given = nest("C[m,n] += A[m,k] * B[k,n]", bounds={"m": 2, "n": 3, "k": 4}, like=LIKE)
    assert written == given
    assert [d.like for d in written.dimensions] == ["P", "K", "C"]


@pytest.mark.parametrize(
    ("line", "roles", "is_mac"),
    [
        ("O[i] += W[i,j] * X[j] : i=2,j=3", [Role.WEIGHT, Role.INPUT], True),
        ("O[i] += X[i,j] * Y[j] : i=2,j=3", [Role.INPUT, Role.WEIGHT], True),
        ("O[i] += X[i,j] * Y[j] * filter[j] : i=2,j=3", [Role.INPUT, Role.INPUT, Role.WEIGHT], True),
        ("O[i] += X[i,j] : i=2,j=3", [Role.INPUT], False),
        ("O[i] = X[i] * Y[i] : i=2", [Role.INPUT, Role.WEIGHT], False),
        ("O[] += X[i] * Y[i] : i=2", [Role.INPUT, Role.WEIGHT], True),
    ],
)
def test_roles_follow_names_then_places(line: str, roles: list[Role], is_mac: bool) -> None:
    """Weights are the operand with a weight's name, else the second; only a summed product is a MAC."""
    operator = nest(line)
    assert [tensor.role for tensor in operator.inputs] == roles
    assert operator.is_mac is is_mac


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("O[n,k += W[k] : n=1", "column 7: expected ',' or ']', found '+='"),
        ("O[n] += W[n", "column 12: expected ',' or ']', found the end"),
        ("O[n] += W[n] ? X[n]", "column 14: unexpected character '?'"),
        ("O[n] - W[n]", "column 6: unexpected character '-'"),
        ("O[n] W[n]", "column 6: expected '+=' or '=', found 'W'"),
        ("O[n] += 3[n]", "column 9: expected the name of a tensor, found '3'"),
        ("O[n] += W[n+1]", "column 14: expected '*' and a dimension after a number"),
        ("O[n] += W[0*n]", "column 13: expected a stride from 1"),
        ("O[n] += W[n+2*n]", "column 15: n is twice in one index"),
        ("O[n] += O[n] : n=1", "column 9: tensor O is named twice"),
        ("O[n] += W[n] : n", "column 17: expected '=', found the end"),
        ("O[n] += W[n] : n=x", "column 18: expected an integer, found 'x'"),
        ("O[n] += W[n] : n=1,n=2", "column 20: second bound of n"),
        ("O[n] += W[n] : n=1 k=2", "column 20: expected ',' or the end, found 'k'"),
        ("O[n] += W[n] : n=99999999999999999999", "column 18: expected at most 2147483647"),
        ("O[n] += W[n] : n=0", "n: expected a bound from 1 to 2147483647, got 0"),
        ("O[n] += W[n,k] : n=1", "k: missing bound"),
        ("O[batch] += W[batch] : batch=1, Bach=2", "Bach: bound of no index: unknown name 'Bach', did"),
        ("O[n] = W[n,k] : n=1,k=2", "k: not an index of the output, expected '+='"),
        ("", "column 1: expected the name of a tensor, found the end"),
    ],
)
def test_errors_point_at_the_fault(line: str, message: str) -> None:
    """Every syntax error names its column, every semantic one its dimension."""
    with pytest.raises(InputError) as caught:
        nest(line)
    assert f"{caught.value.field}: {caught.value.message}".startswith(message)
    assert "\n" not in str(caught.value)


@settings(max_examples=effort(300), deadline=None)
@given(st.text(alphabet="On[]+=*,:1 WkI?-", max_size=40))
def test_any_text_is_an_operator_or_an_input_error(line: str) -> None:
    """No text makes the parser fail in any other way than by an input error."""
    with contextlib.suppress(InputError):
        nest(line)
