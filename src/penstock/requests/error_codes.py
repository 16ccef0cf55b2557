"""From what went wrong below to what a protocol calls it, and to what its client reads of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from penstock.log.errors import LogError

CodeT = TypeVar("CodeT")

logger = logging.getLogger(__name__)


class Refused(NamedTuple, Generic[CodeT]):
    """What a client hears: its protocol's code, and a text without a path, SQL or Python."""

    code: CodeT
    text: str


class ErrorCodes(Generic[CodeT]):
    """One protocol's code for each kind of error that a client hears of; any other one is a bug.

    A kind stands for its subclasses too, but for those that have a code of their own.
    """

    def __init__(self, codes: Mapping[type[Exception], CodeT]) -> None:
        self._codes = dict(codes)

    def code_of(self, error: BaseException) -> CodeT | None:
        """Return the code of the nearest kind that `error` is of, or None for a bug."""
        for kind in type(error).__mro__:
            if kind in self._codes:
                return self._codes[kind]
        return None

    def refused(self, error: BaseException) -> Refused[CodeT] | None:
        """Return what a client hears of `error`, or None for a bug."""
        code = self.code_of(error)
        return None if code is None else Refused(code, text_for_clients(error))


def text_for_clients(error: BaseException) -> str:
    """Return what a client may read of an error that is no bug.

    The operating system's words name paths, so they go to the log instead.
    """
    if isinstance(error, LogError):
        return error.for_clients
    if isinstance(error, OSError):
        logger.error("a request failed", exc_info=error)
        return "the operating system refused; the broker's log says why"
    return str(error)
