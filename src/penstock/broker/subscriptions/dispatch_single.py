"""Exclusive and Failover: one consumer at a time gets everything, in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.dispatch import Dispatcher
from penstock.broker.subscriptions.failover import choose_active

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.broker.subscriptions.deliveries import Consumer

FAILOVER_DELAY_SECONDS: Final = 1.0
"""How long acknowledgements of a consumer that lost its turn may still arrive before the next one
is given what is open (Pulsar's activeConsumerFailoverDelayTimeMillis)."""


class SingleDispatcher(Dispatcher):
    """Sends to the active consumer; a redelivery is a new start from the first open message."""

    _active: Consumer | None = None
    _waiting: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        self._stop_waiting()
        super().stop()

    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        del offsets  # One message back means all after it too: order is kept.
        if consumer is self._active:
            self._start_over()

    def acknowledged(self, offset: int) -> None:
        self.outstanding.settle(offset, self._cursor)

    def acknowledged_below(self) -> None:
        self.outstanding.settle_below(self._cursor)
        if self._reader.position < self._cursor.position:
            self._reader.rewind(self._cursor.position)
            self.wake()

    @property
    def active(self) -> Consumer | None:
        return self._active

    def _consumers_changed(self, gone: Consumer | None) -> None:
        chosen = choose_active(self._partition, self.consumers)
        former, self._active = self._active, chosen
        if chosen is former:
            if gone is None:
                self.consumers[-1].receiver.activated(self.consumers[-1] is chosen)
            return
        self._stop_waiting()
        if former is not None and former is not gone:
            self._wait_for_acknowledgements()
        self._start_over()
        for consumer in self.consumers:
            consumer.receiver.activated(consumer is chosen)

    async def _turn(self) -> bool:
        consumer = self._active
        if consumer is None or not consumer.can_take or self._waiting is not None:
            return False
        if not await self._reader.fill():
            return False
        if consumer is not self._active or self._waiting is not None:
            return True
        deliveries = []
        while consumer.permits > 0 and (entry := self._reader.take()) is not None:
            delivery = self._delivery(consumer, entry, 0)
            if delivery is not None:
                deliveries.append(delivery)
        self.outstanding.forget_oldest()
        self._send(consumer, deliveries)
        return True

    def _start_over(self) -> None:
        self.outstanding.clear()
        self._reader.rewind(self._cursor.position)
        self.wake()

    def _wait_for_acknowledgements(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.call_later(FAILOVER_DELAY_SECONDS, self._waited)

    def _waited(self) -> None:
        self._waiting = None
        self._start_over()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
