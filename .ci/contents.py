"""Compare wheels with the source tree that they were built from: every file of the package, byte for byte.

python .ci/contents.py SOURCE WHEEL...
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def package_files(source: Path) -> dict[str, bytes]:
    """The files under version control that belong to the package, by their place in a wheel."""
    listed = subprocess.run(
        ["git", "-C", str(source), "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    package = source / "src" / "tilewright"
    folders = {entry.resolve(): entry.name for entry in package.iterdir() if entry.is_dir()}
    found = {}
    for name in filter(None, listed):
        path = source / name
        if path.is_symlink():
            continue
        for folder, link in folders.items():
            if folder in path.parents:
                found[f"tilewright/{link}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
        if path.parent == package:
            found[f"tilewright/{path.name}"] = path.read_bytes()
    return found


def main(source: str, *wheels: str) -> int:
    """Tell what is missing, too much or different."""
    expected, failed = package_files(Path(source).resolve()), False
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            held = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
        missing, added = sorted(expected.keys() - held.keys()), sorted(held.keys() - expected.keys())
        changed = sorted(name for name in expected.keys() & held.keys() if expected[name] != held[name])
        print(f"{wheel.rpartition('/')[2]}: {len(held)} files of {len(expected)}")
        for what, names in (("missing", missing), ("not in the source", added), ("different", changed)):
            for name in names:
                print(f"  {what}: {name}")
            failed |= bool(names)
    return 1 if failed or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
