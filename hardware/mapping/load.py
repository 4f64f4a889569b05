"""Engines from presets and from machine files; every problem is one line with the file and the field."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.foundation.description import names_a_file, parse_description, read_data, read_description
from tilewright.foundation.named_files import NamedFiles
from tilewright.hardware.mapping.build import build_engine
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.families import family_description, is_parametrised
from tilewright.hardware.mapping.identity import engine_hash, engine_to_dict
from tilewright.hardware.mapping.schema import MachineFile

__all__ = ["engine_hash", "engine_to_dict", "list_presets", "load_description", "load_engine", "parse_engine"]


PRESETS = NamedFiles(Path(__file__).parent / "presets", "machines")


def list_presets() -> list[str]:
    """Names of the machines that come with the package or with installed ones, sorted."""
    return PRESETS.names()


def load_engine(name_or_path: str | os.PathLike[str]) -> Engine:
    """The engine of a preset name or of a YAML file.

    A path object, a text with a folder in it and a text that ends in ``.yaml`` or ``.yml`` are files;
    any other text is a preset's name.

    Raises
    ------
    InputError : for an unknown name, an unreadable file, or a file that does not describe an engine
    """
    if is_parametrised(name_or_path):
        return parametrised(str(name_or_path))
    if not names_a_file(name_or_path):
        return _load_preset(os.fspath(name_or_path))
    path = Path(name_or_path)
    return parse_engine(read_description(path), str(path), path.stem)


def load_description(name_or_path: str | os.PathLike[str]) -> tuple[Any, str]:
    """The plain data of a preset or a machine file, and what errors call the file.

    Raises
    ------
    InputError : for an unknown name, or a file that is no YAML
    """
    if is_parametrised(name_or_path):
        text, name = family_description(str(name_or_path), PRESETS.path)
        return read_data(text, name), name
    named = names_a_file(name_or_path)
    path = Path(name_or_path) if named else PRESETS.path(os.fspath(name_or_path))
    where = str(path) if named else path.name
    return read_data(read_description(path), where), where


def parse_engine(text: str, where: str, name: str) -> Engine:
    """The engine that a machine file's text describes.

    Parameters
    ----------
    text : YAML
    where : what errors call the file
    name : the engine's name

    Raises
    ------
    InputError : for text that is not YAML or does not describe an engine
    """
    return parse_description(text, where, MachineFile, lambda file: build_engine(file, name))


@cache
def parametrised(text: str) -> Engine:
    """The engine of a preset with parameters, such as ``gemmini[array=32]``; raises ``InputError``."""
    description, name = family_description(text, PRESETS.path)
    return parse_engine(description, name, name)


@cache
def _load_preset(name: str) -> Engine:
    path = PRESETS.path(name)
    return parse_engine(read_description(path), path.name, name)
