"""The program: verbs, and the handling of every error."""

from __future__ import annotations

import atexit
import inspect
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tilewright import __version__
from tilewright.cli.exits import Exit
from tilewright.cli.terminal import beginning
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.command import PROGRAM, command
from tilewright.cli.terminal.console import error_line, give_up, note_line, standard, tell
from tilewright.cli.terminal.signals import Interruption, ignore_signals, interrupt_on_signals
from tilewright.foundation.caches import leave_no_empty_folder
from tilewright.foundation.errors import (
    InputError,
    OutputError,
    ReadingLimitError,
    names_flags,
    one_line,
    shortened,
)

VERBS = {
    "map": "tilewright.cli.mapping.map:map_command",
    "explore": "tilewright.cli.mapping.explore:explore_command",
    "schedule": "tilewright.cli.scheduling.schedule:schedule_command",
    "codesign": "tilewright.cli.scheduling.codesign:codesign_command",
    "bench": "tilewright.cli.benchmarks.bench:bench_command",
    "compare": "tilewright.cli.benchmarks.compare:compare_command",
    "runs": "tilewright.cli.benchmarks.runs:runs_command",
    "evaluate": "tilewright.cli.evaluate:evaluate_command",
    "check": "tilewright.cli.check:check_command",
    "list": "tilewright.cli.catalog.listing:list_command",
    "show": "tilewright.cli.catalog.show:show_command",
    "convert": "tilewright.cli.catalog.convert:convert_command",
    "emit": "tilewright.cli.mapping.emit:emit_command",
    "doctor": "tilewright.cli.doctor:doctor_command",
}
"""Module and function of every verb, in the order of the help."""

GRACE = 0.1
"""Seconds for which the end waits for other threads."""

_SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def _import(files: list[str] | None) -> list[str] | None:
    if files:
        from tilewright.foundation.extensions import import_files

        import_files(files)
    return files


Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="FILE",
        callback=_import,
        is_eager=True,
        help="Run a Python file first; it adds methods, cost models, networks or plots (repeatable).",
    ),
]


def _importing(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb with ``--import`` behind its own flags."""

    @wraps(verb)
    def run_verb(*args: Any, imports: Imports = None, **flags: Any) -> Any:
        return verb(*args, **flags)

    signature = inspect.signature(verb, eval_str=True)
    added = inspect.Parameter("imports", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Imports)
    parameters = [*signature.parameters.values(), added]
    run_verb.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run_verb.__annotations__ = {**verb.__annotations__, "imports": Imports}
    return run_verb


class _LoadedVerbs(MappingABC[str, Any]):
    """The parsers of the verbs; each is imported and built when it is first asked for."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            module, _, function = VERBS[name].partition(":")
            verb = typer.Typer(add_completion=False, **_SETTINGS)
            verb.command(name)(_importing(getattr(import_module(module), function)))
            self._built[name] = typer.main.get_command(verb)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)

    def __contains__(self, name: object) -> bool:
        return name in VERBS


class _Program(TyperGroup):
    """The program: it knows its verbs by name and loads the one that was called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _LoadedVerbs()  # type: ignore[assignment]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print usage, flags and verbs; a verb of which no line is known is loaded."""
        from tilewright.cli.terminal.help import HelpText
        from tilewright.cli.verb_lines import LINES

        text = HelpText()
        text.paragraph(self.get_usage(ctx), bold=True)
        text.paragraph(self.help or "")
        text.gap()
        flags = [
            record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
        ]
        text.panel("Options", [((names,), reported) for names, reported in flags])
        verbs = [(name, LINES.get(name) or self.commands[name].get_short_help_str(1000)) for name in VERBS]
        text.panel("Commands", [((name,), reported) for name, reported in verbs])
        print(text)


app = typer.Typer(
    name=PROGRAM,
    cls=_Program,
    help="Provably optimal mappings of neural-network layers on spatial accelerators.",
    no_args_is_help=True,
    **_SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    imports: Imports = None,
) -> None:
    """Flags of the program itself."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with the contract's exit code."""
    beginning.begin()
    try:
        interrupt_on_signals()
        _hold_descriptors()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        code = run(sys.argv[1:] if args is None else args)
        ignore_signals()  # everything is written; what is left takes no time
    except Interruption:  # while an error was being reported, or just after the end
        code = Exit.INTERRUPTED
    for number, stream in enumerate((sys.stdout, sys.stderr), 1):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            give_up(stream, number)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process as it stands: to take it apart takes a tenth of a second, and nothing is left to do.

    A solver that did not stop in time must not hold up the exit, nor be cut off from what it uses.  What
    looks at limits for it ends by itself, within the grace, where there is no solver any more.
    """
    until = time.monotonic() + GRACE
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(max(0.0, until - time.monotonic()))
    if threading.active_count() == 1:
        atexit._run_exitfuncs()
    leave_no_empty_folder()
    os._exit(code)


def _hold_descriptors() -> None:
    """Standard descriptors that are closed lead nowhere, so that no file that is opened takes their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:  # only where a lower one could not be held
                os.dup2(opened, number)
                os.close(opened)


def run(args: Sequence[str]) -> int:
    """Run the command line; every outcome is an exit code, every failure one line on stderr.

    Results that standard output did not take are a failure; a reader that has gone away is not notified.
    """
    with standard.taken():
        code = _run(args)
    failures = [*standard.logs, *([standard.failure] if standard.failure is not None else [])]
    for failure in failures:
        if failure is not standard.failure or not isinstance(failure.reason, BrokenPipeError):
            error_line(str(failure))
    return code or (Exit.ERROR if failures else Exit.OK)


def _run(args: Sequence[str]) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: note_line(str(message))
        return _answered(args)


def _answered(args: Sequence[str]) -> int:
    call.restart()
    command.begin(args)
    naming = names_flags.set(True)
    try:
        code = typer.main.get_command(app).main(list(args), prog_name=PROGRAM, standalone_mode=False)
        return int(code or 0)
    except InputError as error:
        error_line(str(error) + _foreign(error, args))
        return Exit.LIMIT if isinstance(error, ReadingLimitError) else Exit.USAGE
    except (Interruption, KeyboardInterrupt, typer.Abort):
        error_line("interrupted")
        return Exit.INTERRUPTED
    except SystemExit as end:  # the completion's own flags, and files of --import
        if end.code is None or isinstance(end.code, int):
            return end.code or Exit.OK
        error_line(str(end.code))
        return Exit.ERROR
    except OutputError as error:
        if error is not standard.failure:
            error_line(str(error))
        return Exit.ERROR
    except Exception as error:
        if hasattr(error, "format_message"):
            return _usage_error(error)
        _unexpected(error, verbose=bool({"-v", "--verbose"} & set(args)))
        return Exit.ERROR
    finally:
        names_flags.reset(naming)


def _foreign(error: InputError, args: Sequence[str]) -> str:
    """What to do with a file that another program wrote."""
    from tilewright.report.exchange.convert import foreign_program

    path, _, line = error.where.rpartition(":")
    path = path if line.isdigit() else error.where
    program = foreign_program(path) if path in args and args[0] != "convert" else None
    return "" if program is None else f" (a file of {program}: `convert {path} --to tilewright` reads it)"


def _usage_error(error: Any) -> int:
    """What the parser of the command line complains about; without arguments, the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        tell(error.format_message())
        return Exit.USAGE
    path = context.command_path if context is not None else PROGRAM
    verb = path.removeprefix(PROGRAM).strip()
    message = shortened(error.format_message().rstrip("."))
    error_line(f"{verb}: {message}" if verb else message)
    return Exit.USAGE


def _unexpected(error: Exception, *, verbose: bool) -> None:
    reason = f"{type(error).__name__}: {one_line(error)}"
    if isinstance(error, OSError) and error.filename and error.strerror:  # a file that nobody asked for
        reason = f"{shortened(str(error.filename))}: {error.strerror}"
    if verbose:
        import traceback

        tell("".join(traceback.format_exception(error)).rstrip())
        error_line(reason)
    else:
        error_line(f"{reason} (-v shows the traceback)")


if __name__ == "__main__":
    main()
