"""Exceptions that keep no memory.

A traceback has the variables of all functions that it went through, such as a batch that was
inflated and then refused. Whoever keeps the exception keeps them, and where one of them is the
exception itself, they stay until the collector of garbage finds them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")
ErrorT = TypeVar("ErrorT", bound=BaseException)


def letting_go(work: Callable[[], ResultT]) -> Callable[[], ResultT]:
    """Return what does `work`; what it raises keeps nothing of what it had."""

    def do() -> ResultT:
        try:
            return work()
        except BaseException as error:
            let_go(error)
            raise

    return do


def bare(error: ErrorT) -> ErrorT:
    """Return a refusal for others to keep: without where it was raised, and what it came of."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def let_go(error: BaseException) -> None:
    """Have an exception, and those it came of, keep nothing but where they were raised.

    What is still running keeps what it has.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
