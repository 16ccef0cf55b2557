"""Answers that need logs which may not be open yet."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from penstock.broker.topics.opening import open_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.broker.topics.partition import Partition
    from penstock.session import Answer

ReplyT = TypeVar("ReplyT")


def once_open(
    partitions: Iterable[Partition], answer: Callable[[], Answer[ReplyT]]
) -> Answer[ReplyT]:
    """Return `answer()`, now if all the partitions are open, else when they are.

    A partition that can't be opened is none to wait for: what `answer` asks it for says so.
    """
    closed = [partition for partition in partitions if not partition.is_open]
    return _answer_later(closed, answer) if closed else answer()


async def _answer_later(closed: list[Partition], answer: Callable[[], Answer[ReplyT]]) -> ReplyT:
    await open_all(closed)
    answered = answer()
    return await answered if isinstance(answered, Awaitable) else answered
