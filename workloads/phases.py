"""A prompt, then steps whose cache grows by one token each: phases of a language model, weighed.

``prefill:1,decode:200`` reads a prompt once and adds 200 tokens to it.  Step ``i`` finds ``i`` tokens more in
the cache than the first one.  Steps at some of these lengths are layers of their own; a step in between costs
no more than the next longer one, and no less than a layer that stands for all lengths between two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tilewright.foundation.errors import InputError
from tilewright.workloads.families import family_network, parameters_of, with_parameters
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.selection import SelectedLayer, select_layers

PREFILL, DECODE = "prefill", "decode"
FLAG = "--phases"
MOST_STEPS = 2**20
LENGTHS = 5
"""Lengths of the cache that have layers of their own, by default."""

Spanning = Callable[[Operator, Operator], Operator | None]
"""Makes the operator that no layer between two costs less than."""


@dataclass(frozen=True, slots=True)
class Phases:
    """How often a prompt is read, and how many tokens follow it.

    Parameters
    ----------
    prompts, steps : how often each phase runs
    """

    prompts: int
    steps: int

    def __str__(self) -> str:
        named = ((PREFILL, self.prompts), (DECODE, self.steps))
        return ",".join(f"{phase}:{runs}" for phase, runs in named if runs)


def parse_phases(text: str) -> Phases:
    """``prefill:1,decode:200``, or one of the two; raises ``InputError``."""
    runs: dict[str, int] = {}
    for part in "".join(text.split()).split(","):
        phase, colon, count = part.partition(":")
        readable = colon and phase in (PREFILL, DECODE) and phase not in runs
        if not readable or not count.isascii() or not count.isdigit() or not 0 < int(count) <= MOST_STEPS:
            expected = f"expected {PREFILL}:1,{DECODE}:200, each phase once and 1 to {MOST_STEPS:,} times"
            raise InputError(FLAG, text, f"cannot read {part!r}, {expected}")
        runs[phase] = int(count)
    return Phases(runs.get(PREFILL, 0), runs.get(DECODE, 0))


def spread(first: int, steps: int, lengths: int) -> tuple[int, ...]:
    """Some lengths of the cache, evenly spread from the first step's to the last one's.

    Parameters
    ----------
    first : tokens in the cache at the first step
    steps : each finds one token more
    lengths : how many, at least 2 where there are several steps
    """
    parts = max(1, min(lengths, steps) - 1)
    return tuple(dict.fromkeys(first + (steps - 1) * part // parts for part in range(parts + 1)))


def first_length(model: str, phases: Phases) -> int:
    """Tokens in the cache at the first step: those behind the prompt, or those that a step is given.

    Raises
    ------
    InputError : for a model without phases, or a step where a prompt is to be read first
    """
    given = {parameter.name: parameter.value for parameter in parameters_of(model)}
    if not {"phase", "tokens", "cached"} <= given.keys():
        raise InputError(FLAG, model, "expected a language model with parameters, such as llama3[size=8B]")
    if given["phase"] == PREFILL:
        return int(given["cached"]) + int(given["tokens"])
    if phases.prompts or given["tokens"] != "1":
        raise InputError(FLAG, model, "expected phase=prefill, whose tokens are the prompt's")
    return int(given["cached"])


def phase_layers(
    model: str,
    phases: Phases,
    lengths: Sequence[int],
    patterns: Sequence[str] = (),
    spanning: Spanning = lambda shorter, longer: None,
) -> list[SelectedLayer]:
    """The distinct layers of all phases, each with how often it runs.

    Parameters
    ----------
    model : a family of language models with its parameters; ``tokens`` and ``cached`` are the prompt's
    phases : how often each runs
    lengths : of the cache that are looked at, increasing, the first and the last step's among them
    patterns : glob patterns of layers, without the phase before their names
    spanning : makes what bounds the steps in between; not asked where every step has its length

    Raises
    ------
    InputError : for steps between two lengths that nothing bounds
    """
    layers: list[SelectedLayer] = []
    if phases.prompts:
        layers += [
            SelectedLayer(layer.operator, tuple(f"{PREFILL}.{name}" for name in layer.names), phases.prompts)
            for layer in select_layers(family_network(model), patterns)
        ]
    if phases.steps:
        steps = [_operators(model, length, patterns) for length in lengths]
        alike: dict[tuple[Operator, ...], list[str]] = {}
        for name in steps[0]:
            alike.setdefault(tuple(step[name] for step in steps), []).append(name)
        for operators, names in alike.items():
            layers += _steps_of(names, operators, lengths, spanning)
    return layers


def _steps_of(
    names: Sequence[str], operators: Sequence[Operator], lengths: Sequence[int], spanning: Spanning
) -> list[SelectedLayer]:
    """A layer of all steps if it does not change, else one per length and one for all between two of them."""
    if len(set(operators)) == 1:
        return [SelectedLayer(operators[0], _at("", names), lengths[-1] - lengths[0] + 1)]
    layers = [SelectedLayer(operators[0], _at(f"[cached={lengths[0]}]", names))]
    for (low, high), (shorter, longer) in zip(pairwise(lengths), pairwise(operators), strict=True):
        if high - low > 1:
            between = spanning(shorter, longer)
            if between is None:
                raise InputError(FLAG, names[0], f"no bound is known between {low} and {high} cached tokens")
            layers.append(
                SelectedLayer(between, _at(f"[cached={low + 1}..{high - 1}]", names), 0, high - low - 1)
            )
        layers.append(SelectedLayer(longer, _at(f"[cached={high}]", names), high - low, 1))
    return layers


def _at(length: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{DECODE}{length}.{name}" for name in names)


def _operators(model: str, cached: int, patterns: Sequence[str]) -> dict[str, Operator]:
    """The layers of one step, by name, in the sequence of the network's distinct layers."""
    step = {"phase": DECODE, "tokens": 1, "cached": cached}
    network = family_network(with_parameters(model, step))
    return {name: layer.operator for layer in select_layers(network, patterns) for name in layer.names}
