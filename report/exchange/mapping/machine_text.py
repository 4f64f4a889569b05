"""Machine files as text, from their fields."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import yaml

from tilewright.foundation.errors import InputError
from tilewright.foundation.units import exact
from tilewright.foundation.yaml_document import Tagged
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import parse_engine
from tilewright.report.exchange.bundle import Bundle

_RATE_DECIMALS = 6


class _Dumper(yaml.SafeDumper):
    """Writes exact numbers, and no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_number(dumper: yaml.SafeDumper, number: Fraction) -> yaml.Node:
    kind = "int" if number.denominator == 1 else "float"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", exact(number))


def _represent_tagged(dumper: yaml.SafeDumper, tagged: Tagged) -> yaml.Node:
    return dumper.represent_mapping(f"!{tagged.tag}", dict(tagged))


_Dumper.add_representer(Fraction, _represent_number)
_Dumper.add_representer(Tagged, _represent_tagged)


def yaml_text(data: object) -> str:
    """Plain data as YAML; fractions are exact decimals, innermost lists and mappings one line."""
    return str(
        yaml.dump(
            data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None
        )
    )


def rate_text(amount: Fraction, unit: str = "elements/cycle") -> str:
    """A bandwidth of a machine file, rounded to six decimals."""
    places = 10**_RATE_DECIMALS
    return f"{exact(Fraction(round(amount * places), places))} {unit}"


def is_exact_rate(amount: Fraction) -> bool:
    """Whether `rate_text` loses nothing."""
    scaled: Fraction = amount * 10**_RATE_DECIMALS
    return scaled.denominator == 1


def build_machine(bundle: Bundle, fields: dict[str, Any], where: str) -> Engine:
    """Keep the fields of a machine file, and the machine that they make.

    Raises
    ------
    InputError : for fields that make no machine, naming the file that they come from
    """
    try:
        engine = parse_engine(yaml_text(fields), f"{where} as a machine file", bundle.name)
    except InputError as error:
        place = error.where.partition(" as a machine file")[0]
        raise InputError(f"{place} as a machine file", error.field, error.message) from None
    bundle.machine, bundle.engine = fields, engine
    return engine
