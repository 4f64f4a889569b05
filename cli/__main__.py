"""``python -m tilewright.cli``."""

from tilewright.cli.main import main

main()
