"""Hostile inputs: files with one thing replaced, bytes flipped or cut, and texts of every option."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import yaml

VALUES: tuple[Any, ...] = (
    10**30,
    -1,
    0,
    2**63,
    -(10**18),
    10**4000,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    -0.0,
    True,
    None,
    "",
    "x" * 300,
    "\x1b[31mred",
    "a\0b",
    "\uff11\uff12",
    "\u0664",
    [],
    {},
    [[[[]]]],
    {"a": {"b": []}},
    "=1+1",
    "1e400kB",
    "1e400",
    "1/0",
    "9" * 5000,
    "0",
    "-1",
    "../../etc/passwd",
    "\ud800",
    "NaN",
    3.5,
    [None],
    "1e999 B",
)
"""What a field is replaced by."""

TEXTS: dict[str, tuple[str, ...]] = {
    "LAYER": (
        "gemm:M=0,N=1,K=1",
        "gemm:M=1,N=1,K=999999999999999999",
        "gemm:M=\u0664,N=1,K=1",
        "gemm:M=1e9,N=1,K=1",
        "gemm:M=1,M=1,N=1,K=1",
        "gemm:",
        "gemm:M",
        "gemm:M=1,N=1,K=1,name=\x1b[2J",
        "gemm:M=9999999999999999999,N=1",
        "conv:K=1,C=1,P=1,Q=1,R=1,S=1,stride=0",
        "conv:K=1,C=1,H=1,W=1,R=9,S=9",
        "conv:K=1,C=1,P=1,Q=1,R=1,S=1,pad=99999999999x1",
        "conv:K=1,C=1,P=1,Q=1,R=1,S=1,groups=7",
        "nest:",
        "nest:O[i] += A[i] : i=0",
        "nest:O[i] += A[99999999999999999999*i] : i=2",
        "nest:O[i] += A[i] : i=\u0664",
        "nest:O[i] += A[i",
        "nest:" + "O[" * 3000,
        "nest:O[i] = A[i] : i=2 as \0",
        "x" * 300 + ".yaml",
        "x" * 5000,
        "a\0b.yaml",
        "a\0b.onnx",
        "/dev/zero.yaml",
        ":training",
        "onnx:",
        "resnet18:training:training",
        "\x1b[31m",
    ),
    "--arch": ("x" * 300 + ".yaml", "a\0b.yaml", "/dev/zero", "/", "", "\x1b]0;title\x07", "./", "/dev/null"),
    "--objective": (
        "E^1e999",
        "E^99999999999999999999*D^1",
        "E^0.0000000000000000000000001*D^1",
        "E^\u0664*D^1",
        "E^0*D^0",
        "E^1.5*D^" + "9" * 5000,
        "E^nan",
        "",
        "\0",
        "E^1.333333333333*D^1.000000007",
    ),
    "--constraint": (
        "utilization>=1e999999999",
        "cycles<=1e999999999",
        "cycles<=-0",
        "cycles<=nan",
        "cycles<=inf",
        "cycles<=0",
        "energy<=" + "9" * 5000,
        "edp<=1e-999999999",
        "tile(M@DRAM)<=" + "9" * 5000,
        "tile(\u0664@DRAM)<=1",
        "tile(M@DRAM)<=\u0664",
        "spatial=" + "M," * 3000,
        "spatial(M@\x1b[1m)=1",
        "stationary@=O",
        "\0",
        "(" * 5000,
        "cycles<=1/0",
        "cycles<=1e5/1e5",
        "energy<=0e999999999",
        "cycles<=.",
        "cycles<=1_0",
        "tile(M@DRAM)!=-1",
    ),
    "--time-limit": ("1e999", "nan", "inf", "-1", "9" * 5000, "\u0664s", "0.0000000000s", "1h1h1h\0"),
    "--gap": ("1e999", "nan", "-0.1", "\u0664%", "1e-999999999x", "100%"),
    "--solver": (
        "annealing[steps=1e99]",
        "annealing[steps=" + "9" * 5000 + "]",
        "annealing[steps=nan]",
        "random[" * 2000,
        "annealing[steps=-1]",
        "annealing[steps=\u0664\u0664x]",
        "genetic[nothing=1]",
        "annealing[]x",
        "\0",
        "annealing[cooling=nan]",
        "annealing[cooling=inf]",
        "random[samples=" + "9" * 25 + "]",
    ),
    "--batch": ("0", "-1", "9" * 5000, "99999999999999999999", "\u0664x"),
    "--seed": ("9" * 5000, "x", "1e9"),
    "--threads": ("0", "-5", "1e3"),
    "--best": ("0", "-1", "1e3"),
    "--out": (
        "x" * 300 + ".json",
        "a\0b.json",
        "/",
        "r.txt",
        "no/such/r.json",
        "loop.json",
        "/proc/version/r.json",
    ),
    "--report": ("x" * 300 + ".html", "a\0b.html", "r.pdf", "no/such/r.html", "loop.html"),
    "--log": ("x" * 300 + ".log", "a\0b", "/", "no/such/log"),
    "--save-mappings": ("x" * 300, "a\0b", "/dev/null/x"),
    "--warm-start": ("x" * 300, "a\0b", "/", "/dev/zero", "/dev/null"),
}
"""Texts for the model and for options of ``map``, each of them wrong."""


def laughs(levels: int, *, merge: bool) -> str:
    """A kilobyte of YAML that doubles with every level."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels):
        both = f"[*a{level - 1}, *a{level - 1}]"
        lines.append(f"a{level}: &a{level}\n  " + (f"<<: {both}" if merge else f"b: {both}"))
    return "\n".join(lines)


BROKEN = {
    "alias.yaml": laughs(40, merge=False),
    "merge.yaml": laughs(40, merge=True),
    "self.yaml": "a: &a [*a]",
    "deep.yaml": "[" * 600,
    "indented.yaml": "\n".join(" " * i + "a:" for i in range(700)),
    "digits.yaml": "levels: " + "9" * 5000,
    "tags.yaml": "levels: !!bool x\ncompute: !!timestamp y\n",
    "nul.yaml": "levels: \0",
    "deep.json": "[" * 100_000,
    "digits.json": '{"schema": ' + "9" * 5000 + "}",
    "nan.json": '{"schema": NaN}',
    "infinite.json": '{"schema": 1e999}',
    "nul.json": '{"schema": "\0"}',
    "words.onnx": "\x08\x07" * 500,
}
"""Files that no verb takes."""


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value inside plain data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def mutated(data: Any, draw: random.Random) -> Any:
    """A copy of plain data in which one value is replaced, left out or misnamed."""
    copy = json.loads(json.dumps(data))
    *way, last = draw.choice([*places(copy)])
    parent = copy
    for step in way:
        parent = parent[step]
    action = draw.randrange(8)
    if action == 0:
        del parent[last]
    elif action == 1 and isinstance(parent, dict):
        parent[f"{last}s"] = parent.pop(last)
    else:
        parent[last] = draw.choice(VALUES)
    return copy


def yaml_text(data: Any) -> str:
    """Data as YAML, hostile values included."""
    return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False))


def json_text(data: Any) -> str:
    """Data as JSON, hostile values included."""
    return json.dumps(data)


def garbled(content: bytes, draw: random.Random) -> bytes:
    """Bytes of which some are flipped, cut off or repeated."""
    action = draw.randrange(3)
    if action == 0:
        return content[: draw.randrange(len(content))]
    if action == 1:
        at = draw.randrange(len(content))
        return content[:at] + content[at : at + 64] * 3 + content[at:]
    copy = bytearray(content)
    for _ in range(draw.choice((1, 4, 64))):
        copy[draw.randrange(len(copy))] = draw.randrange(256)
    return bytes(copy)
