"""Import every module of the installed package, without extras, and list what an extra is needed for.

    python .ci/imports.py

A module that needs an extra has to say which; exit code 1 where one fails otherwise.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import tilewright


def main() -> int:
    """Import all, tell what failed."""
    names = [found.name for found in pkgutil.walk_packages(tilewright.__path__, "tilewright.")]
    names = [name for name in names if not name.endswith(".__main__")]
    failed = 0
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            clear = "tilewright[" in str(error)
            failed += not clear
            print(f"{name}: {'needs an extra' if clear else 'FAILED'}: {error}")
    place = tilewright.__path__[0]
    print(f"{len(names)} modules of tilewright {tilewright.__version__} in {place}, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
