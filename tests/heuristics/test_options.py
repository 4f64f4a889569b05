"""Methods as users name them: names, options, errors, lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tilewright.foundation.errors import InputError
from tilewright.foundation.method_text import MethodText, parse_method
from tilewright.foundation.options import option, options_text, with_options
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.methods import method, method_names
from tilewright.solvers.mapping.registry import SOLVERS


@dataclass(frozen=True)
class Example:
    """A method with one option of every kind."""

    count: int = option(3, "how many", low=1, high=9)
    share: float = option(0.5, "how much", low=0, high=1)
    fast: bool = option(True, "whether in a hurry")
    kind: str = option("plain", "which", choices=("plain", "fancy"))
    pair: tuple[int, ...] = option((1, 2), "two", read=lambda text: tuple(map(int, text.split("+"))))


def test_method_texts() -> None:
    """Names with and without options, and back to text."""
    assert parse_method("branch") == MethodText("branch", {})
    assert parse_method("a[x=1, y=2-3]") == MethodText("a", {"x": "1", "y": "2-3"})
    assert str(parse_method("a[ x = 1 ]")) == "a[x=1]"
    assert parse_method("a[]") == MethodText("a", {})


@pytest.mark.parametrize("text", ["", "a[", "a]", "a[x]", "a[x=]", "a[=1]", "a[x=1,]", "a[x=1,x=2]", "a b[c"])
def test_malformed_method_texts(text: str) -> None:
    """One line that names the flag."""
    with pytest.raises(InputError, match="--solver") as caught:
        parse_method(text)
    assert "\n" not in str(caught.value)


def test_options_have_types() -> None:
    """Every kind of value is read."""
    read = with_options(
        Example, parse_method("e[count=4,share=0.25,fast=off,kind=fancy,pair=5+6]"), "--solver"
    )
    assert read == Example(4, 0.25, False, "fancy", (5, 6))
    assert with_options(Example, parse_method("e"), "--solver") == Example()
    assert "count=3 (how many)" in options_text(Example)
    assert "fast=on (whether in a hurry)" in options_text(Example)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("e[counts=4]", "did you mean 'count'"),
        ("e[count=x]", "a whole number of at least 1 and at most 9"),
        ("e[count=10]", "at most 9"),
        ("e[share=-1]", "a number of at least 0"),
        ("e[share=nan]", "a number of at least 0"),
        ("e[fast=maybe]", "on or off"),
        ("e[kind=fance]", "did you mean 'fancy'"),
        ("e[pair=1+x]", "pair"),
    ],
)
def test_bad_options(text: str, message: str) -> None:
    """Each is told with what was expected."""
    with pytest.raises(InputError, match=message):
        with_options(Example, parse_method(text), "--solver")


def test_every_heuristic_loads() -> None:
    """Each is what the registry says, is not exact, and explains itself."""
    for name in HEURISTICS.names():
        heuristic = HEURISTICS.make(MethodText(name, {}))
        assert (heuristic.name, heuristic.exact) == (name, False)
        assert heuristic.version
        assert type(heuristic).__doc__
        assert HEURISTICS.entry(name).source
    assert not set(HEURISTICS.names()) & set(SOLVERS.names())
    assert method_names() == [*SOLVERS.names(), *HEURISTICS.names()]


def test_methods_of_both_kinds_by_text() -> None:
    """Exact solvers take no options; unknown names get the nearest one."""
    assert method("branch").exact
    assert method("annealing[steps=3]") == replace(method("annealing"), steps=3)  # type: ignore[type-var]
    with pytest.raises(InputError, match="takes no options"):
        method("branch[steps=3]")
    with pytest.raises(InputError, match="did you mean 'annealing'"):
        method("aneealing")
