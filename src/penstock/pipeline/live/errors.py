"""Why a table can't be read with what came since."""

from __future__ import annotations


class LiveTableError(Exception):
    """A table and its topics can't be read as one; the message says what to do."""
