"""As many producers of one partition as there is room for."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from penstock import limits
from penstock.broker.errors import TooManyProducersError
from penstock.limits import PRODUCERS_REMEMBERED
from penstock.memory import Holding

if TYPE_CHECKING:
    from penstock.memory import SharedAccount


class Remembered(Protocol):
    """What is kept of a producer."""

    used_at: float
    """When it last wrote, by the monotonic clock."""


ProducerT = TypeVar("ProducerT", bound=Remembered)


class RememberedProducers(Generic[ProducerT]):
    """Producers by their ids, in the order in which they last wrote: the first is forgotten first.

    Who keeps another order has a `forget_idle` of its own.

    `size` is about how many bytes one of them takes.
    """

    def __init__(self, account: SharedAccount, size: int) -> None:
        self._producers: OrderedDict[int, ProducerT] = OrderedDict()
        self._account = account
        self._held = Holding(account)
        self._size = size

    def __len__(self) -> int:
        return len(self._producers)

    def close(self) -> None:
        """The partition is gone."""
        self._producers.clear()
        self._count()

    def forget_idle(self) -> None:
        """Forget those that have not written for long."""
        oldest = time.monotonic() - limits.PRODUCER_IDLE_SECONDS
        while self._producers and next(iter(self._producers.values())).used_at < oldest:
            self._producers.popitem(last=False)
        self._count()

    def _make_room(self) -> None:
        """Have room for one more. Raises TooManyProducersError."""
        if self._has_room:
            return
        self.forget_idle()
        if not self._has_room:
            self._account.reclaim()
        if not self._has_room:
            raise TooManyProducersError("there is no room for one more idempotent producer yet")

    @property
    def _has_room(self) -> bool:
        count = len(self._producers)
        if count < limits.PRODUCERS_LEAST:
            return True
        return count < PRODUCERS_REMEMBERED and self._account.room(self._held.size) > 0

    def _count(self) -> None:
        self._held.follow(len(self._producers) * self._size)
        if self._held.size:
            self._account.ask_back(self._held, self.forget_idle)
        else:
            self._account.forget(self._held)
