"""``python -m tilewright``."""

from tilewright.foundation.interpreter import leave_current_folder

if __name__ == "__main__":
    leave_current_folder()

from tilewright.cli.__main__ import main

if __name__ == "__main__":
    main()
