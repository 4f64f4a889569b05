"""Mutation testing of what proofs rest on: a sample of changed operators and constants, each against tests.

    python .ci/mutation.py draw WORK [--seed 1] [--each 8]
    python .ci/mutation.py run WORK --python .venv/bin/python [--minutes 25]
    python .ci/mutation.py show WORK [--all]

`draw` copies the package and its tests into the folder WORK and draws, per module, places and at each of them
one mutation of cosmic-ray (`pip install --editable '.[mutation]'`).  `run` applies one after the other to the
copy and runs the tests of its subject until the first failure, for so many minutes of the processor; called
again, it goes on.  `show` prints the counts and what no test noticed.  Results: docs/mutation-testing.md.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.commands.init import _all_work_items as all_mutations
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

TOP = Path(__file__).resolve().parents[1]
SECONDS = 300.0
"""Wall seconds of one mutant's tests; one that takes longer is noticed.  A test has 30 s of the processor."""


@dataclass(frozen=True)
class Subject:
    """Modules that are tested together: patterns of paths, the quickest tests first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


def _subject(modules: str, tests: str) -> Subject:
    return Subject(tuple(modules.split()), tuple(f"tests/{path}" for path in tests.split()))


STRIDED = "solvers/test_strided_uneven.py"
SUBJECTS = {
    "tiles": _subject(
        "formulation/expression/{interval,operations}.py"
        " formulation/mapping/parts/{relaxation,compulsory}.py"
        " formulation/mapping/nests/{remainders,tiling}.py formulation/mapping/tiles/{chains,tables}.py",
        "formulation/test_expressions.py formulation/test_remainders.py formulation/test_relaxation.py"
        " formulation/test_lower_bounds.py"
        " formulation/test_space.py solvers/test_bound_program.py solvers/test_segment_bounds.py"
        " solvers/test_exhaustive.py",
    ),
    "arrangements": _subject(
        "formulation/mapping/parts/{segment_parts,segment_cycles}.py formulation/mapping/demands/dataflow.py"
        " formulation/mapping/nests/{arrangements,arrangement_rules,orders}.py"
        " solvers/mapping/arrangements/{segment_bounds,arrangement_trees}.py"
        " solvers/mapping/arrangements/{outside_front,survivors,wholes,part_searches,inside_together}.py",
        "formulation/test_orders.py formulation/test_lower_bounds.py heuristics/test_dataflows.py"
        " solvers/test_outside_front.py solvers/test_survivors.py solvers/test_entering.py"
        " solvers/test_segment_bounds.py solvers/test_uneven.py"
        " solvers/test_by_arrangement.py formulation/test_optional_level.py"
        f" {STRIDED}::test_claims_over_strided_tiles_are_those_of_enumeration[divisors-0]"
        f" {STRIDED}::test_parts_cost_no_more_than_random_mappings",
    ),
    "costs": _subject(
        "formulation/mapping/cost/*.py",
        "formulation/test_lower_bounds.py formulation/test_hierarchy.py formulation/test_reference.py"
        " formulation/test_dmazerunner.py"
        " formulation/test_sharing.py formulation/test_particulars.py formulation/test_optional_level.py",
    ),
    "branching": _subject(
        "solvers/mapping/tables/{array_bounds,stages}.py"
        " solvers/mapping/tree/{part_bounds,nodes,goals,division,refinement,best_first,tree}.py"
        " solvers/mapping/tree/{fronts,listed_tiles,small_spaces}.py",
        "solvers/test_stages.py solvers/test_bound_program.py solvers/test_array_bounds.py"
        " solvers/test_branch.py solvers/test_division.py solvers/test_small_spaces.py"
        " solvers/test_outside_front.py"
        f" {STRIDED}::test_claims_over_strided_tiles_are_those_of_enumeration[divisors-0]",
    ),
    "plans": _subject(
        "solvers/scheduling/tiled/{bounds,size_bounds,barriers,ancestors}.py"
        " solvers/scheduling/tiled/{port_shares,port_pairs,copies,layer_begins,joint_bounds}.py",
        "scheduling/tiled/test_port_shares.py scheduling/tiled/test_port_pairs.py"
        " scheduling/tiled/test_layer_begins.py scheduling/tiled/test_copies.py"
        " scheduling/tiled/test_bounds.py scheduling/tiled/test_size_bounds.py"
        " scheduling/tiled/test_barriers.py scheduling/tiled/test_sizes.py scheduling/tiled/test_methods.py",
    ),
    "rounds": _subject(
        "solvers/scheduling/tiled/exact/{counts,proof,order,sequences,instance,round_length_kernel}.py",
        "scheduling/tiled/test_sequences.py scheduling/tiled/test_exact_enumeration.py"
        " scheduling/tiled/test_exact.py",
    ),
    "trees": _subject(
        "solvers/scheduling/tiled/set/{bounds,exact,segments}.py"
        " solvers/scheduling/tiled/set/trees/*.py solvers/scheduling/tiled/set/leaf/*.py",
        "scheduling/tiled/set/test_tree_bounds.py scheduling/tiled/set/test_leaf_bounds.py"
        " scheduling/tiled/set/test_trees.py"
        " scheduling/tiled/set/test_proofs.py",
    ),
    "chains": _subject(
        "solvers/scheduling/tiled/kapla/*.py",
        "scheduling/tiled/kapla/test_cover.py scheduling/tiled/kapla/test_chains.py"
        " scheduling/tiled/kapla/test_training.py",
    ),
    "tasks": _subject(
        "solvers/scheduling/herald/lower_bounds/{bounds,relaxations,multipliers,front,tight_horizons}.py"
        " solvers/scheduling/herald/windows.py",
        "scheduling/test_tight_horizons.py scheduling/test_exact.py scheduling/test_joined.py"
        " scheduling/test_large.py"
        " scheduling/test_short_limits.py",
    ),
}


def main() -> int:
    """One of the three verbs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("verb", choices=("draw", "run", "show"))
    parser.add_argument("work", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=8, help="mutants of a module, at most")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--all", action="store_true", help="mutants that were noticed, too")
    args = parser.parse_args()
    base = args.work.absolute() / "mutants.sqlite"
    if args.verb == "draw":
        draw(args.work.absolute(), args.seed, args.each)
    with use_db(str(base), WorkDB.Mode.open) as mutants:
        if args.verb == "run":
            run(mutants, args.work.absolute(), args.python.absolute(), args.minutes * 60)
        show(mutants, args.all)
    return 0


def draw(work: Path, seed: int, each: int) -> None:
    """Copy what is tested, and choose mutants of every module."""
    copy = work / "copy"
    (copy / "src").mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TOP / "src" / "tilewright", copy / "src" / "tilewright", ignore=ignored)
    for name in ("tests", "studies", "docs", "examples"):
        shutil.copytree(TOP / name, copy / name, ignore=ignored)
    shutil.copy(TOP / "pyproject.toml", copy)
    os.chdir(copy)
    with use_db(str(work / "mutants.sqlite"), WorkDB.Mode.create) as mutants:
        for subject in SUBJECTS.values():
            for module in modules_of(subject):
                mutants.add_work_items(drawn(module, random.Random(f"{seed} {module}"), each))


def modules_of(subject: Subject) -> Iterator[Path]:
    """Modules of a subject in the copy, each once."""
    for pattern in subject.modules:
        head, _, rest = pattern.partition("{")
        names, _, tail = rest.partition("}")
        for name in names.split(",") if rest else [""]:
            paths = sorted(Path("src/tilewright").glob(head + name + tail))
            assert paths, pattern
            yield from (path for path in paths if path.name != "__init__.py")


def drawn(module: Path, random: random.Random, each: int) -> list[WorkItem]:
    """Mutants of a module: places drawn without replacement, at each of them one mutation."""
    places: dict[tuple[int, int], list[WorkItem]] = {}
    passed_by = list(_annotations(ast.parse(module.read_text())))
    for item in all_mutations([module], {}):
        (mutation,) = item.mutations
        if _counts(mutation) and not any(start <= mutation.start_pos < end for start, end in passed_by):
            places.setdefault(mutation.start_pos, []).append(item)
    chosen = random.sample(sorted(places), min(each, len(places)))
    mutations = [random.choice(places[place]).mutations[0] for place in chosen]
    return [WorkItem.single(f"{rank:03d} {module}", mutation) for rank, mutation in enumerate(mutations)]


def _counts(mutation: MutationSpec) -> bool:
    """Whether a mutation can change a result: no decorators and exceptions, no `is` for `==`."""
    name = mutation.operator_name.removeprefix("core/")
    if name in ("RemoveDecorator", "ExceptionReplacer"):
        return False
    return not name.endswith(("_Is", "_IsNot")) or "Operator_Is" in name


def _annotations(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where types stand, which nothing looks at while the program runs."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            part = getattr(node, name, None)
            if part is not None:
                yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


def _turn(item: WorkItem) -> tuple[str, float]:
    """One mutant of every module before a second one of any; the modules as they are drawn."""
    rank, _, _module = str(item.job_id).partition(" ")
    return rank, random.Random(item.job_id).random()


def _decorates(mutation: MutationSpec) -> bool:
    """Whether a mutation lies in a decorator, such as `slots` of a dataclass: no result depends on these."""
    parts = (
        part
        for node in ast.walk(ast.parse(mutation.module_path.read_text()))
        for part in getattr(node, "decorator_list", [])
    )
    return any(
        (part.lineno, part.col_offset) <= mutation.start_pos < (part.end_lineno, part.end_col_offset)
        for part in parts
    )


def run(mutants: WorkDB, work: Path, python: Path, seconds: float) -> None:
    """Test one mutant after the other, subjects in turn, until the time is up."""
    os.chdir(work / "copy")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # the mutated module is restored first
    os.environ |= {"PYTHONPATH": str(work / "copy" / "src"), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    pytest = [str(python), "-m", "pytest", "-x", "-q", "--timeout", "30", "-p", "no:cacheprovider"]
    commands: dict[str, list[str]] = {}
    for name, subject in SUBJECTS.items():
        command = [*pytest, *subject.tests]
        commands |= {str(module): command for module in modules_of(subject)}
        passed = work / f"{name}.passed"
        if not passed.exists():
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            passed.touch()
    begun = _children()
    for item in sorted(mutants.pending_work_items, key=_turn):
        if _children() - begun > seconds:
            return
        (mutation,) = item.mutations
        if _decorates(mutation):
            mutants.set_result(item.job_id, WorkResult(WorkerOutcome.SKIPPED))
            continue
        before = _children()
        result = mutate_and_test(item.mutations, shlex.join(commands[str(mutation.module_path)]), SECONDS)
        mutants.set_result(item.job_id, result)
        print(f"{_children() - before:6.1f} s  {_outcome(result):9} {_line(mutation)}", flush=True)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(mutants: WorkDB, everything: bool) -> None:
    """Counts per module, then the survivors."""
    results = {item.job_id: (item.mutations[0], result) for item, result in mutants.completed_work_items}
    counts: dict[str, Counter[str]] = {}
    for mutation, result in results.values():
        counts.setdefault(str(mutation.module_path), Counter())[_outcome(result)] += 1
    for module, count in sorted(counts.items()):
        place = module.removeprefix("src/tilewright/")
        print(f"{place:60} {count['killed']:3} killed {count['survived']:3} survived")
    total = sum(counts.values(), Counter())
    left = mutants.num_work_items - mutants.num_results
    print(
        f"{total['killed']} killed, {total['survived']} survived, {total['skipped']} skipped; {left} not run"
    )
    for mutation, result in sorted(results.values(), key=lambda pair: _line(pair[0])):
        if everything or _outcome(result) == "survived":
            print(f"\n{_outcome(result)} {_line(mutation)}")
            print(
                *(
                    line
                    for line in (result.diff or "").splitlines()
                    if line[:1] in "+-" and line[:3] not in ("---", "+++")
                ),
                sep="\n",
            )


def _outcome(result: WorkResult) -> str:
    if result.worker_outcome == WorkerOutcome.SKIPPED:
        return "skipped"
    return "survived" if result.test_outcome == TestOutcome.SURVIVED else "killed"


def _line(mutation: MutationSpec) -> str:
    module = str(mutation.module_path).removeprefix("src/tilewright/")
    return f"{module}:{mutation.start_pos[0]:03d}:{mutation.start_pos[1]} {mutation.operator_name[5:]}"


if __name__ == "__main__":
    sys.exit(main())
