"""The program's beginning: ``tilewright``, ``python -m tilewright`` and ``python -m tilewright.cli``.

The rest is loaded once signals are handled: loading takes a second, in which Ctrl-C is one line as well.
"""

from tilewright.foundation.interpreter import leave_current_folder

if __name__ == "__main__":
    leave_current_folder()

from typing import NoReturn

from tilewright.cli.terminal import beginning


def main() -> NoReturn:
    """Load the command line, and run it."""
    beginning.leave_on_signals()
    beginning.begin()
    from tilewright.cli import main as program

    program.main()


if __name__ == "__main__":
    main()
