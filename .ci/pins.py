"""Print the lowest version that ``pyproject.toml`` allows of each dependency, on the Python that runs this.

    python .ci/pins.py PYPROJECT [EXTRA ...]

One ``name==version`` per line, as pip reads them, what builds the package included; needs the package
``packaging``.  Exit code 1 for a requirement without a lower bound, which cannot be tried.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement


def lowest(requirement: Requirement) -> str:
    """The version after ``>=``; empty where there is none."""
    bounds = [one.version for one in requirement.specifier if one.operator == ">="]
    return bounds[0] if bounds else ""


def main(path: Path, extras: list[str]) -> int:
    """Print all pins, or tell what has no lower bound."""
    content = tomllib.loads(path.read_text())
    project, build = content["project"], content["build-system"]["requires"]
    groups = [build, project["dependencies"], *(project["optional-dependencies"][one] for one in extras)]
    requirements = [Requirement(text) for group in groups for text in group]
    unbounded = 0
    for requirement in requirements:
        if requirement.name == project["name"]:
            continue  # extras of its own, which are named beside it
        version = lowest(requirement)
        unbounded += not version
        if not version:
            print(f"{requirement}: no lower bound", file=sys.stderr)
        elif requirement.marker is None or requirement.marker.evaluate():
            print(f"{requirement.name}=={version}")
    return 1 if unbounded else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
