"""Timeloop's files with variables, arithmetic, templates and Accelergy's tables; templates that mean harm."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from pathlib import Path

import pytest
from clocks import delay

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange import templates
from tilewright.report.exchange.convert import Conversion, convert
from tilewright.report.exchange.source import read_source

ARCHITECTURE = """\
architecture:
  version: 0.4
  nodes:
  - !Component
    name: DRAM
    class: DRAM
    attributes: {width: word * 4, datawidth: word}
  - !ArrayContainer
    name: chip
    attributes: {technology: "45nm"}
  - !Component
    name: glb
    class: SRAM
    attributes:
      depth: kilo * 4
      width: 64
      datawidth: word
      read_bandwidth: width / datawidth
      write_bandwidth: .5
  - !ArrayContainer
    name: PE
    spatial:
      meshX: columns
      meshY: max(2, columns / 4)
  - !Component
    name: spad
    class: regfile
    attributes: {depth: ceil(11.5), width: 16, datawidth: word}
  - !Component
    name: mac
    class: intmac
    attributes: {datawidth: word}
"""
VARIABLES = """\
variables:
  version: 0.4
  global_cycle_seconds: 1e-9
  word: 2 ** 4
  kilo: base * 256
  base: 4
  columns: .5 * 16
"""
SUMMARY = """\
ERT_summary:
  version: 0.4
  table_summary:
  - name: top.chip.glb[1..1]
    actions: [{name: read, average_energy: 24}, {name: write, average_energy: 28}]
ART:
  version: 0.4
  tables: [{name: top.chip.glb, area: 12.5}]
"""


def written(folder: Path, **files: str) -> list[str]:
    """Files by their stems."""
    for stem, text in files.items():
        (folder / f"{stem}.yaml").write_text(text)
    return [str(folder / f"{stem}.yaml") for stem in files]


def machine(conversion: Conversion) -> Engine:
    """The machine of a conversion."""
    assert conversion.bundle.engine is not None
    return conversion.bundle.engine


def test_variables_and_arithmetic(tmp_path: Path) -> None:
    """Attributes may speak of variables of any file, of each other and of functions."""
    files = written(tmp_path, arch=ARCHITECTURE, names=VARIABLES, tables=SUMMARY)
    conversion = convert(files, "tilewright")
    engine = machine(conversion)
    assert engine.clock_mhz == 1000
    assert engine.element_bits == 16
    assert [level.capacity for level in engine.levels] == [None, 16384, 12]
    glb = engine.level("glb")
    assert (glb.read_bandwidth, glb.write_bandwidth) == (4, Fraction(1, 2))
    assert (glb.read_energy, glb.write_energy) == (6, 7)
    assert glb.fanout is not None
    assert sorted(axis.size for axis in glb.fanout.axes) == [2, 8]
    assert "areas change no mapping" in [loss.message for loss in conversion.losses]
    assert machine(convert(files[::-1], "tilewright")).levels == engine.levels


def test_a_field_may_have_the_name_of_a_variable(tmp_path: Path) -> None:
    """A field beside hides the variable of its name from its neighbours, never from itself."""
    same = ARCHITECTURE.replace(
        "width: 64\n      datawidth: word", "width: width * 4\n      datawidth: datawidth"
    )
    names = VARIABLES + "  width: 16\n  datawidth: width\n"
    glb = machine(convert(written(tmp_path, arch=same, names=names, tables=SUMMARY), "tilewright")).level(
        "glb"
    )
    assert (glb.capacity, glb.read_bandwidth) == (16384, 4)


def test_variables_in_circles_are_refused(tmp_path: Path) -> None:
    """A variable that needs itself is no number: the field that asks for it is named."""
    circular = VARIABLES.replace("base: 4", "base: kilo / 256")
    with pytest.raises(InputError, match=r"arch\.yaml:15: .*depth: got 'kilo \* 4', expected"):
        convert(written(tmp_path, arch=ARCHITECTURE, names=circular), "tilewright")


def test_templates_are_rendered(tmp_path: Path) -> None:
    """Loops, conditions, settings and files of the same folder give the machine that they write down."""
    plain = machine(convert(written(tmp_path, arch=ARCHITECTURE, names=VARIABLES), "tilewright"))
    template = "{{ add_to_path('elsewhere') }}{% set deep = 4 %}\n" + ARCHITECTURE.replace(
        "kilo * 4", "kilo * {{ deep }}"
    ).replace("meshX: columns", "meshX: {% for c in ['columns'] %}{{ c }}{% endfor %}")
    names = "{{ include_text('names.txt') }}{% if false %}broken: ["
    (tmp_path / "names.txt").write_text(VARIABLES)
    files = written(tmp_path, made=template, given=names + "{% endif %}\n")
    made = machine(convert(files, "tilewright"))
    assert made.levels == plain.levels
    assert made.clock_mhz == plain.clock_mhz


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("a: 1\nb: {% for %}\n", r":2: its template cannot be rendered: "),
        ("a: {{ unknown }}\n", "its template cannot be rendered: 'unknown' is undefined"),
        ("a: {{ ''.__class__.__mro__ }}\n", "access to attribute '__class__'"),
        ("a: {{ cycler.__init__.__globals__.os }}\n", "access to attribute '__init__'"),
        ("a: {{ include_text('../outside.yaml') }}\n", "no file in the template's folder"),
        ("a: {{ include_text('/etc/passwd') }}\n", "no file in the template's folder"),
        ("a: {{ include_text('link.yaml') }}\n", "no file in the template's folder"),
        ("{% include '../outside.yaml' %}\n", "no file in the template's folder"),
        ("a: {{ 'x' * 10 ** 10 }}\n", "its template (cannot be rendered|takes more than)"),
        (
            "{% for i in range(90000) %}{% for j in range(90000) %}xxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
            "makes more than",
        ),
    ],
)
def test_hostile_templates_are_one_line(template: str, told: str, tmp_path: Path) -> None:
    """A template reaches no Python, no file elsewhere, and grows to no size."""
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "outside.yaml").write_text("secret: 1\n")
    os.symlink(tmp_path / "outside.yaml", folder / "link.yaml")
    path = folder / "arch.yaml"
    path.write_text(template)
    with pytest.raises(InputError, match=told) as caught:
        read_source(path)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_template_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that print nothing are stopped at the limit of time."""
    monkeypatch.setattr(templates, "SECONDS", 0.7)
    path = tmp_path / "arch.yaml"
    path.write_text("{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}")
    began = time.monotonic()
    with pytest.raises(InputError, match=r"its template takes longer than 0\.7 s"):
        read_source(path)
    assert time.monotonic() - began < 0.7 + delay()


def test_numbers_may_begin_with_their_point(tmp_path: Path) -> None:
    """Sizes, rates, energies and formulas of machine files take .5 as 0.5."""
    from tilewright.foundation.units import parse_bandwidth, parse_energy, parse_size
    from tilewright.hardware.arithmetic import parse_formula

    assert parse_size(".5 kB") == parse_size("512 B")
    assert parse_bandwidth(".6 GB/s") == parse_bandwidth("0.6 GB/s")
    assert parse_energy(".25 pJ") == Fraction(1, 4)
    assert parse_formula(".5 kB + .25", ()).value({}) == Fraction(2049, 4)
    for text in (".", "1.", ".kB"):
        with pytest.raises(ValueError, match="expected"):
            parse_size(f"{text} kB")
