"""When a client may be told of a consumer what it did not ask for.

The Go client knows its consumer a moment after it has read the SUCCESS, and drops what it reads of
it in between. Who sends FLOW knows it; who has no queue does so late, so a second is enough, which
is how long Pulsar's broker waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_KNOWN_AFTER_SECONDS: Final = 1.0


class _Newcomer(NamedTuple):
    known: Callable[[], None]
    timer: asyncio.TimerHandle


class Newcomers:
    """The consumers of a connection that its client may not know yet."""

    def __init__(self) -> None:
        self._newcomers: dict[int, _Newcomer] = {}

    def add(self, consumer_id: int, known: Callable[[], None]) -> None:
        """The client is about to read that it has this consumer: have `known` called later."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(_KNOWN_AFTER_SECONDS, self.known, consumer_id)
        self._newcomers[consumer_id] = _Newcomer(known, timer)

    def known(self, consumer_id: int) -> None:
        """The client knows the consumer, if it did not before."""
        newcomer = self._newcomers.pop(consumer_id, None)
        if newcomer is not None:
            newcomer.timer.cancel()
            newcomer.known()

    def remove(self, consumer_id: int) -> None:
        """The consumer is gone."""
        newcomer = self._newcomers.pop(consumer_id, None)
        if newcomer is not None:
            newcomer.timer.cancel()
