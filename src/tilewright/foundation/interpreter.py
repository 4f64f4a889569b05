"""How this program starts Python: a child that runs no file of the current folder.

An interpreter looks for modules in the folder of its script, or for ``-c`` and ``-m`` in the current one,
before it looks in its own library: a ``types.py`` there would be run by every child.  Children are started so
that they look where their parent does (what ``PYTHONPATH``, the environment or the program itself put on
``sys.path``), but neither in the current folder nor in that of the parent's script, even while they begin.

The program imports this module first of all, so it imports nothing that is not there from the beginning.
"""

import os
import sys

_PATH = "PYTHONPATH"
_INSTALLATION = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
"""The folder that holds this program's package."""
_BEGIN = """\
import ast, runpy, sys
first, last = ast.literal_eval(sys.argv[1])
between = [place for place in sys.path if place not in first]
sys.path[:] = [*first, *between, *(place for place in last if place not in (*first, *between))]
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def python_command(script: str | os.PathLike[str], *arguments: str) -> list[str]:
    """The command that runs a script in a child; to be started with `python_environment`.

    Raises
    ------
    OSError : where this process is no Python interpreter that could be started again
    """
    places = (_places(), [_INSTALLATION])
    return [_executable(), *_flags(), "-c", _BEGIN, repr(places), os.fspath(script), *arguments]


def isolated_command(script: str | os.PathLike[str], *arguments: str) -> list[str]:
    """The command that runs a script which needs Python's own library alone: no other folder is looked at.

    Raises
    ------
    OSError : as `python_command`
    """
    return [_executable(), "-I", "-S", os.fspath(script), *arguments]


def python_environment() -> dict[str, str]:
    """The environment of a child: that of this process, without current folders among Python's own."""
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    named = environment.pop(_PATH, "").split(os.pathsep)
    kept = _elsewhere(named, _unwanted())
    if kept:
        environment[_PATH] = os.pathsep.join(kept)
    return environment


def leave_current_folder() -> None:
    """Look for modules no more in the current folder, which ``python -m`` puts before all others.

    What the environment names stays; where this program itself lies in the folder, it is the last place.
    """
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) in _unwanted():
        del sys.path[0]
        if _INSTALLATION not in sys.path:
            sys.path.append(_INSTALLATION)


def _executable() -> str:
    if not sys.executable or getattr(sys, "frozen", False):
        raise OSError("this program is not run by an interpreter that it could start again")
    return sys.executable


def _places() -> list[str]:
    """Where this process looks for modules, in the same sequence, without folders that it was not given."""
    unwanted = _unwanted()
    main = sys.modules.get("__main__")
    script = getattr(main, "__file__", None)
    if script is not None and getattr(main, "__spec__", None) is None:
        unwanted.add(os.path.realpath(os.path.dirname(script) or os.curdir))
    return [os.path.abspath(place) for place in _elsewhere(sys.path, unwanted)]


def _elsewhere(places: list[str], unwanted: set[str]) -> list[str]:
    kept = (place for place in places if isinstance(place, str) and place)
    return [place for place in kept if os.path.realpath(place) not in unwanted]


def _unwanted() -> set[str]:
    """The current folder, and the one in which this process began."""
    try:
        return {os.path.realpath(os.curdir), _BEGUN}
    except OSError:  # it was removed meanwhile
        return {_BEGUN}


def _flags() -> list[str]:
    """The interpreter's flags that a child shares, and the one that keeps the folder of its script away."""
    flags = sys.flags
    shared = ["-P"]
    shared += ["-E"] * flags.ignore_environment + ["-s"] * flags.no_user_site + ["-S"] * flags.no_site
    shared += ["-B"] * flags.dont_write_bytecode + ["-O"] * flags.optimize
    shared += ["-Xdev"] * flags.dev_mode + ["-Xutf8"] * (flags.utf8_mode == 1)
    return [*shared, *(f"-W{option}" for option in sys.warnoptions)]


try:
    _BEGUN = os.path.realpath(os.curdir)
except OSError:
    _BEGUN = ""
