"""How a command fails: with one line that says what went wrong and what to do next."""

from __future__ import annotations

from typing import Final

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


class CommandError(Exception):
    """The command can't do what was asked. The message is for the person who typed it."""


class UsageError(CommandError):
    """The command line or the configuration is wrong."""
