"""Tables of fused mappings: a row for each subject and machine, printed as soon as it is known."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence


def print_rows(
    program: str,
    heads: Sequence[str],
    defaults: tuple[Sequence[str], Sequence[str]],
    row: Callable[[str, str, float], list[str]],
    given: Sequence[str] | None,
) -> None:
    """Read the command line and print the table that it asks for.

    Parameters
    ----------
    program : the module, for its help
    heads : of columns; the first one names the subjects and, in the plural, their option
    defaults : subjects and machines
    row : the cells of a subject on a machine, in so many seconds of the processor
    given : the arguments, by default those of the process
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument(f"--{heads[0]}s", dest="subjects", nargs="+", default=defaults[0])
    parser.add_argument("--machines", nargs="+", default=defaults[1])
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args(given)
    print("| " + " | ".join(heads) + " |")
    print("|---|---" + "|---:" * (len(heads) - 2) + "|")
    for subject in asked.subjects:
        for machine in asked.machines:
            print("| " + " | ".join(row(subject, machine, asked.seconds)) + " |", flush=True)
