"""What worker processes have in common."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def leave_with_parent() -> None:
    """In a worker: Ctrl-C is the parent's business, and where that dies nothing stays behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait_for_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_for_parent, daemon=True).start()
