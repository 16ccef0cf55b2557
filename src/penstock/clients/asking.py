"""Who decides how often a question is asked: a pipeline outlives a broker that is restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

ResultT = TypeVar("ResultT")


class Ask(Protocol):
    """Has a question asked again where it ends with OSError, for a while."""

    def __call__(self, question: Callable[[], ResultT], /) -> ResultT: ...
