"""The standard streams of this process: there, whatever its caller closed, and failing in words."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final

from penstock.cli.failure import CommandError
from penstock.cli.output import OutputClosed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_INPUT: Final = 0
_OUTPUT: Final = 1
_ERRORS: Final = 2


def prepare_streams() -> None:
    """Have three streams open, and writes to standard output raise OutputClosed or CommandError.

    What the caller closed leads nowhere: its number would be that of the next file or connection,
    and what is said to standard error would be written there.
    """
    for number in (_INPUT, _OUTPUT, _ERRORS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It gets the lowest number that is free: this one.
    encoding, errors = (
        (sys.stdout.encoding, sys.stdout.errors) if sys.stdout else ("utf-8", "strict")
    )
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_StandardOutput(_OUTPUT, "w", closefd=False)),
        encoding=encoding,
        errors=errors,
        line_buffering=os.isatty(_OUTPUT),
    )


class _StandardOutput(io.FileIO):
    """Says what is wrong once. What comes later goes nowhere, for Python flushes at its end."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError as error:
            _lead_nowhere()
            raise OutputClosed from error
        except OSError as error:
            _lead_nowhere()
            raise CommandError(
                f"standard output can't be written: {error.strerror}; give it another place to go"
            ) from error


def _lead_nowhere() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _OUTPUT)
    os.close(nowhere)
