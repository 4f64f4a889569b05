"""The command line that the studies with a store share: what is missing is computed and kept, then shown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from studies.answers import AnswerStore, Asked, Reported, answers
from tilewright.foundation.errors import InputError


@dataclass(frozen=True, slots=True)
class Work(Generic[Asked, Reported]):
    """How cells are computed.

    Parameters
    ----------
    open_store : of the file's path
    compute : a function of a module, run in worker processes
    failed : the answer where a worker died of something
    told : called with a line on every finished cell
    fresh : whether every cell has a process of its own
    """

    open_store: Callable[[Path], AnswerStore[Asked, Reported]]
    compute: Callable[[Asked], Reported]
    failed: Callable[[str], Reported]
    reported: Callable[[Asked, Reported], str]
    fresh: bool = False


def study_parser(description: str, store: str, seconds: float) -> argparse.ArgumentParser:
    """The options of every such study, to which its own are added.

    Parameters
    ----------
    description : the module's docstring
    store : the file's name where none is given
    seconds : of a cell's search where none are given
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="of the processor, for each search or proof"
    )
    parser.add_argument("--store", type=Path, default=Path(store), help="what is known; read and added to")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no cell begins")
    parser.add_argument("--only-print", action="store_true", help="compute nothing")
    return parser


def run_study(
    asked: argparse.Namespace,
    work: Work[Asked, Reported],
    cells: Sequence[Asked],
    show: Callable[[AnswerStore[Asked, Reported]], Iterable[str]],
) -> int:
    """Compute the cells that the store lacks, each kept as it ends, and print what ``show`` says of all.

    Returns
    -------
    int
        the exit code: 2 for a store that cannot be read
    """
    try:
        store = work.open_store(asked.store)
        try:
            missing = () if asked.only_print else cells
            ended = answers(
                store, missing, asked.jobs, work.compute, work.failed, fresh=work.fresh, minutes=asked.minutes
            )
            for cell, answer in ended:
                print(work.reported(cell, answer), file=sys.stderr, flush=True)
            print("\n".join(show(store)), flush=True)
        finally:
            store.close()
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
