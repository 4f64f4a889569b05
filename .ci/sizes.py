"""Refuse files that a repository should not carry: large ones and binary ones.

    python .ci/sizes.py [FOLDER]

Looks at every file under version control.  Exit code 1 where one is larger than 500 kB or binary without
standing in the list below, and where an entry of the list has no file any more.
"""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

MOST_BYTES = 500_000

ALLOWED = {"docs/figures/*.png": "pictures of the manual, which its pages show"}
"""Patterns of files that may be binary, each with its reason; no file may be large."""


def refused(folder: Path) -> list[str]:
    """One line for every file, or entry of the list, that should not be there."""
    listed = subprocess.run(
        ["git", "-C", str(folder), "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    lines, used = [], set()
    for name in filter(None, listed):
        path = folder / name
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        allowed = [pattern for pattern in ALLOWED if fnmatch(name, pattern)]
        used.update(allowed)
        if len(content) > MOST_BYTES:
            lines.append(f"{name}: {len(content):,} bytes, at most {MOST_BYTES:,} are allowed")
        elif b"\0" in content and not allowed:
            lines.append(f"{name}: binary; what has to be binary stands in .ci/sizes.py with its reason")
    return lines + [f"{pattern}: no file like this" for pattern in ALLOWED if pattern not in used]


def main(folder: str = ".") -> int:
    """Tell what is refused."""
    lines = refused(Path(folder))
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
