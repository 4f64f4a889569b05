"""Worker processes of every kind of parent: where they look for modules, and what they need of the parent."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from calls import children_of

import tilewright
from tilewright.foundation.interpreter import python_command, python_environment
from tilewright.foundation.pool import Call, WorkerDiedError, computed

SOURCE = Path(tilewright.__file__).parents[1]

REPORT = """
import importlib.util, json, sys
import lib_of_the_user
import tilewright
assert importlib.util.find_spec("numpy") and importlib.util.find_spec("ortools")
print(json.dumps([sys.path, lib_of_the_user.__file__, tilewright.__file__]))
"""
"""What runs in the child."""

PARENT = """
import os, subprocess, sys
{before}
from tilewright.foundation.interpreter import python_command, python_environment
script = sys.argv[1] if len(sys.argv) > 1 else os.environ["REPORT"]
subprocess.run(python_command(script), env=python_environment(), check=True)
"""

HOSTILE = ("json", "runpy", "types", "typing", "pickle", "random", "signal", "re", "os", "site", "numpy")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The folder in which the parent runs, one with a module of the user, and the child's script."""
    here, lib, script = tmp_path / "here", tmp_path / "lib", tmp_path / "child" / "report.py"
    for folder in (here, lib, script.parent):
        folder.mkdir()
    (lib / "lib_of_the_user.py").write_text("")
    script.write_text(REPORT)
    return here, lib, script


WAYS = ("script", "script elsewhere", "module", "-c", "input", "notebook")
PATHS = {
    "named": "{lib}",
    "empty place first": "{sep}{lib}",
    "empty place last": "{lib}{sep}",
    "dot": ".{sep}{lib}",
    "the folder itself": "{here}{sep}{lib}",
    "by the program": "",
}
USUAL = {*((way, "named") for way in WAYS), *(("module", path) for path in PATHS)}


@pytest.mark.parametrize(
    ("way", "path", "safe"),
    [
        pytest.param(way, path, safe, marks=() if (way, path) in USUAL and not safe else pytest.mark.slow)
        for way in WAYS
        for path in PATHS
        for safe in (False, True)
    ],
)
def test_no_child_looks_in_the_current_folder(
    folders: tuple[Path, Path, Path], way: str, path: str, safe: bool
) -> None:
    """However the parent was started: neither the folder nor an empty place, but whatever else was named."""
    here, lib, script = folders
    named = PATHS[path].format(lib=lib, here=here, sep=os.pathsep)
    environment = {**os.environ, "REPORT": str(script), "PYTHONPATH": named}
    if not named:
        del environment["PYTHONPATH"]
    if safe:
        environment["PYTHONSAFEPATH"] = "1"
    before = [] if named else [f"sys.path.insert(0, {str(lib)!r})"]
    if way == "notebook":
        before += ["sys.path.insert(0, '')"]
    program = PARENT.format(before="\n".join(before))
    parent = here / "parent.py"
    if way == "script elsewhere":
        parent = lib.parent / "parent.py"
    parent.write_text(program)
    command = {
        "module": ["-m", "parent", str(script)],
        "-c": ["-c", program, str(script)],
        "notebook": ["-P", "-c", program, str(script)],
        "input": ["-"],
    }.get(way, [str(parent), str(script)])
    if way == "module" and safe:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [named, str(lib)]))
        (lib / "parent.py").write_text(program)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=here,
        env=environment,
        input=program if way == "input" else None,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    places, user, own = json.loads(done.stdout)
    assert "" not in places
    assert not {os.path.realpath(place) for place in places} & {str(here), str(parent.parent)}
    assert (user, own) == (str(lib / "lib_of_the_user.py"), tilewright.__file__)


def test_a_child_begins_where_every_module_is_hostile(folders: tuple[Path, Path, Path]) -> None:
    """No module of the current folder runs, not even while the interpreter begins."""
    here, lib, script = folders
    for name in HOSTILE:
        (here / f"{name}.py").write_text("open('marker', 'a').write(__name__)\n")
    script.write_text("import " + ", ".join(HOSTILE))
    for named in ("", os.pathsep, ".", str(here)):
        subprocess.run(
            [sys.executable, "-P", "-c", PARENT.format(before=""), str(script)],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(lib)},
            check=True,
        )
        before = os.getcwd()
        os.chdir(here)
        try:
            os.environ["PYTHONPATH"] = named
            subprocess.run(python_command(script), env=python_environment(), check=True)
        finally:
            os.environ.pop("PYTHONPATH")
            os.chdir(before)
    assert not (here / "marker").exists()


def test_the_programs_own_folder_is_found_last(tmp_path: Path) -> None:
    """Where the package lies in the current folder, children find it, and others' files there only last."""
    package = tmp_path / "tilewright" / "foundation"
    package.mkdir(parents=True)
    for name in ("__init__.py", "foundation/__init__.py"):
        (tmp_path / "tilewright" / name).write_text("")
    text = (SOURCE / "tilewright" / "foundation" / "interpreter.py").read_text()
    (package / "interpreter.py").write_text(text)
    (tmp_path / "graphlib.py").write_text("open('marker', 'w')")
    (tmp_path / "report.py").write_text("import sys, graphlib, tilewright\nprint(sys.path[-1])")
    command = [sys.executable, "-P", "-c", f"import sys\nsys.path.insert(0, '')\n{PARENT.format(before='')}"]
    done = subprocess.run([*command, "report.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{tmp_path}\n", "")
    assert not (tmp_path / "marker").exists()


def squared(number: int) -> int:
    """What workers of these tests compute."""
    if number < 0:
        raise ValueError(f"{number} is negative")
    if number > 100:
        os._exit(7)
    return number * number


def results(numbers: list[int], **how: bool) -> dict[int, int | str]:
    """What becomes of numbers in two workers."""
    waiting = iter([Call(number, (number,)) for number in numbers])
    results: dict[int, int | str] = {}
    from operator import pow as power

    calls = iter([Call(call.item, (call.item, 2)) for call in waiting])
    for number, future in computed(power, lambda: next(calls, None), 2, lambda: False, **how):
        failure = future.exception()
        results[number] = future.result() if failure is None else repr(failure)
    return results


@pytest.mark.parametrize("fresh", [False, True])
def test_what_workers_return_is_what_the_function_does(fresh: bool) -> None:
    """Every item is answered once, by workers that are kept or by one each; none is left."""
    assert results([*range(9)], fresh=fresh) == {number: number**2 for number in range(9)}
    assert not children_of(os.getpid())


def test_what_a_function_raises_is_raised_here() -> None:
    """An exception travels; a process that ends in the middle is an error of its item alone."""
    calls = iter([Call("zero", (0, -1)), Call("two", (4, 2))])
    futures = dict(computed(pow, lambda: next(calls, None), 1, lambda: False))
    assert isinstance(futures["zero"].exception(), ZeroDivisionError)
    assert futures["two"].result() == 16
    calls = iter([Call("end", (7,)), Call("next", (0,))])
    ended = dict(computed(os._exit, lambda: next(calls, None), 1, lambda: False))
    assert isinstance(ended["end"].exception(), WorkerDiedError)
    assert "exit code 7" in str(ended["end"].exception())
    assert "exit code 0" in str(ended["next"].exception())


def test_a_worker_that_dies_between_two_items_is_replaced() -> None:
    """Nobody waits for it, and no item fails."""
    calls = iter([Call(number, (number, 2)) for number in (3, 4)])
    answers = computed(pow, lambda: next(calls, None), 1, lambda: False)
    assert next(answers)[1].result() == 9
    (worker,) = children_of(os.getpid())
    os.kill(worker, signal.SIGKILL)
    os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
    assert [future.result() for _, future in answers] == [16]


def test_where_no_process_can_be_started_one_computes_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without an interpreter of its own answers all the same, and says why it takes longer."""
    monkeypatch.setattr(sys, "executable", "")
    with pytest.warns(RuntimeWarning, match=r"in this process.*no"):
        assert results([3]) == {3: 9}


UNGUARDED = """
import tilewright as tw
from tilewright.foundation.pool import Call, computed

def mine(number):
    return number

calls = iter([Call(1, (1,))])
for _, future in computed(mine, lambda: next(calls, None), 1, lambda: False):
    print(future.exception())
"""


def test_the_program_that_was_started_is_not_run_again(tmp_path: Path) -> None:
    """A function of the user's script is no task: one line says so, and the script runs once."""
    (tmp_path / "script.py").write_text(UNGUARDED)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert "mine stands in the program that was started" in done.stdout


EXTENDED = """
from tilewright.cli.main import run
from tilewright.foundation.registry import Entry
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.heuristics.mapping.kapla import Kapla

class Mine(Kapla):
    name = "mine"

HEURISTICS.add("mine", Entry("__main__", "Mine", "a method of this program"))
code = run(["bench", "tiny", "-a", "tpu-edge", "--layers", "000*", "-m", "mine,kapla", "-j", "2", "-q"])
print("code", code)
"""


def test_methods_of_a_program_run_in_it(tmp_path: Path) -> None:
    """What a script registers workers do not know: it is computed in its process, and a line says so."""
    (tmp_path / "script.py").write_text(EXTENDED)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "code 0" in done.stdout
    assert "mine" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("tilewright: computed in this process: workers do not know 'mine', ")


STARTING = {
    "interpreter": "the commands of all children",
    "forked": "copies of this process, which look nowhere that it has not looked",
}
"""Modules that start processes of Python, each with its reason."""


def test_python_is_started_in_one_way() -> None:
    """Two modules start every child of this program: nothing else can forget where not to look."""
    ways = r"sys\.executable|^\s*(from|import) multiprocessing|ProcessPool|os\.fork"
    starting = set()
    for folder, _, names in os.walk(SOURCE / "tilewright", followlinks=True):
        for path in (Path(folder) / name for name in names if name.endswith(".py")):
            if re.search(ways, path.read_text(), re.MULTILINE):
                starting.add(path.stem)
    assert starting == set(STARTING)
