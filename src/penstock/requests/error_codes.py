"""From what went wrong below to what a protocol calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

CodeT = TypeVar("CodeT")


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
