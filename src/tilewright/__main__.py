"""``python -m tilewright``."""

from tilewright.cli.__main__ import main

if __name__ == "__main__":
    main()
