"""Files of other programs with one thing replaced or missing: read, or one clear line."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from effort import effort
from hostile import VALUES

from tilewright.foundation.errors import InputError
from tilewright.foundation.yaml_document import Tagged, parse_yaml
from tilewright.report.exchange.convert import convert

DATA = Path(__file__).parents[1] / "data" / "convert"
CONSTRAINTS = """\
constraints:
  targets:
  - {target: CBUF, type: temporal, factors: [C=0, K<=4], permutation: [C, K]}
  - {target: k, type: spatial, factors: [K=16], permutation: KC, split: 1, no_reuse: [I]}
  - {target: CBUF, type: dataspace, keep: [W], no_coalesce: [O]}
"""
MAPPING = """\
mapping:
- {target: CBUF, type: temporal, factors: C=2 K=2, permutation: CK}
- {target: k, type: spatial, factors: K=4, permutation: KC, split: 1}
- {target: DRAM, type: temporal, factors: "P=3,3 Q3 C=2", permutation: CQP}
- {target: CACC, type: datatype, keep: [O], bypass: [I, W]}
"""
ORDER = """\
- name: default
  spatial_mapping: {D1: ["K, 8"]}
  temporal_ordering: [[C, 4], [K, "*"]]
  spatial_mapping_hint: {D1: [K]}
"""
WITH = {"arch": "nvdla-256", "layer": "conv:K=8,C=4,P=3,Q=3,R=1,S=1"}
GROUPS: list[tuple[list[str], dict[str, str]]] = [
    (["eyeriss.arch.yaml", "eyeriss.ert.yaml", "small.problem.yaml"], {}),
    (["tpu.accelerator.yaml", "tpu.workload.yaml", "tpu.mapping.yaml"], {}),
    (["nvdla.arch.yaml"], {}),
    ([CONSTRAINTS], WITH),
    ([MAPPING], WITH),
    (["tpu.workload.yaml", ORDER], {}),
]


class _Dumper(yaml.SafeDumper):
    """Writes tags and exact numbers."""


_Dumper.add_representer(Tagged, lambda dumper, data: dumper.represent_mapping(f"!{data.tag}", dict(data)))
_Dumper.add_representer(Decimal, lambda dumper, data: dumper.represent_float(float(data)))


def ways(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to everything inside."""
    if before:
        yield before
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield from ways(value, (*before, key))


def changed(data: Any, chance: random.Random) -> Any:
    """A copy with one thing replaced or missing."""
    copied = copy.deepcopy(data)
    *way, last = chance.choice(list(ways(copied)))
    place = copied
    for step in way:
        place = place[step]
    if chance.random() < 0.2:
        del place[last]
    else:
        place[last] = chance.choice(VALUES)
    return copied


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(effort(4)))
def test_any_change_is_read_or_told(seed: int, tmp_path: Path) -> None:
    """No change of a file is a crash; an error is one line that names the file."""
    chance = random.Random(seed)
    reported: list[InputError] = []
    for _ in range(120):
        names, given = chance.choice(GROUPS)
        texts = [(DATA / name).read_text() if name.endswith(".yaml") else name for name in names]
        parts = [parse_yaml(text, tags=True).data for text in texts]
        at = chance.randrange(len(parts))
        parts[at] = changed(parts[at], chance)
        paths = []
        for index, part in enumerate(parts):
            path = tmp_path / f"{index}.yaml"
            path.write_text(yaml.dump(part, Dumper=_Dumper, sort_keys=False), errors="surrogatepass")
            paths.append(str(path))
        try:
            convert(paths, "tilewright", arch=given.get("arch"), layer=given.get("layer"))
        except InputError as error:
            reported.append(error)
    assert len(reported) > 20
    assert not [error for error in reported if "\n" in str(error) or not error.message]
