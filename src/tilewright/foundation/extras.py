"""Optional libraries, each of which an extra of the package installs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from tilewright.foundation.errors import InputError


@dataclass(frozen=True, slots=True)
class Extra:
    """A library that an extra brings.

    Parameters
    ----------
    name : of the extra
    library : as people call it
    module : by which it is imported
    """

    name: str
    library: str
    module: str

    @property
    def is_installed(self) -> bool:
        """Whether its library can be imported."""
        return find_spec(self.module) is not None

    def missing(self, where: str, what: str = "") -> InputError:
        """The error about a file or flag that needs the library.

        Parameters
        ----------
        where : the file or flag
        what : of it needs the library; empty for all of it
        """
        return InputError(where, what or None, f"needs {self.library}: pip install 'tilewright[{self.name}]'")


CLUSTER = Extra("cluster", "Dask", "distributed")
LEARNING = Extra("learning", "scikit-learn", "sklearn")
PARQUET = Extra("parquet", "pyarrow", "pyarrow")
MATPLOTLIB = Extra("plots", "matplotlib", "matplotlib")
PLOTLY = Extra("plots", "Plotly", "plotly")
