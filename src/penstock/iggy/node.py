"""What all Iggy connections of one node share: who is connected, and what they are counted in."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.session import Transport


@dataclass(eq=False)
class Client:
    """One connection. `session` is the number of its login, or None before it."""

    id: int
    transport: Transport
    session: int | None = None


class Node:
    """The Iggy side of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.clients: dict[int, Client] = {}
        self.started_at_us = time.time_ns() // 1000
        self.started = time.monotonic()
        self._client_ids = itertools.count(1)
        self._sessions = itertools.count(1)
        self._turns = itertools.count()
        self._preparing = asyncio.Lock()
        self.is_prepared = False
        """Whether `prepare` has nothing left to do."""

    @classmethod
    def of(cls, broker: Broker) -> Self:
        """Return the one node of this broker."""
        node = _nodes.get(broker)
        if node is None:
            node = _nodes[broker] = cls(broker)
        assert isinstance(node, cls)
        return node

    async def prepare(self) -> None:
        """Load what checks and cuts batches; where no run has compiled it yet, that takes seconds.

        All other conversions take longer, and clients give up after 30 seconds: they are not waited
        for here.
        """
        if self.is_prepared:
            return
        async with self._preparing:
            await asyncio.to_thread(import_module, "penstock.records.iggy.cut")
            self.is_prepared = True

    def connect(self, transport: Transport) -> Client:
        """Give a connection its number."""
        client = Client(next(self._client_ids), transport)
        self.clients[client.id] = client
        return client

    def disconnect(self, client: Client) -> None:
        """Forget a connection and take it out of its groups."""
        self.log_out(client)
        self.clients.pop(client.id, None)

    def log_in(self, client: Client) -> int:
        """Begin a session, ending the one before; return its number."""
        self.log_out(client)
        client.session = next(self._sessions)
        return client.session

    def log_out(self, client: Client) -> None:
        """End a session; its groups go on without it."""
        client.session = None
        self.broker.topic_groups.leave_all(client)

    def next_turn(self) -> int:
        """A number that goes up by one a balanced send, whichever connection asks."""
        return next(self._turns)


_nodes: WeakKeyDictionary[Broker, Node] = WeakKeyDictionary()
