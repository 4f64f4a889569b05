"""What a busy machine may add to a limit before a test calls the limit broken."""

from __future__ import annotations

import os

DELAY = float(os.environ.get("TEST_DELAY", "5"))
"""Seconds: ``TEST_DELAY=1`` asks of a quiet machine what the command line promises."""
