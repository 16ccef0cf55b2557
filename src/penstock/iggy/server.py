"""The server that Iggy's clients see: what all their connections share, and what each has."""

from __future__ import annotations

import asyncio
import itertools
import time
from functools import cached_property
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from penstock import limits, wall_clock
from penstock.broker.settings import Anonymous
from penstock.iggy.kept import Kept
from penstock.iggy.last_write import LastWrite
from penstock.iggy.restated import RestatedPolls
from penstock.iggy.silence import Silence
from penstock.requests import call
from penstock.requests.call import ANONYMOUS, Principal, PrincipalKind
from penstock.requests.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.broker import Broker
    from penstock.broker.groups.topic_groups import TopicGroup
    from penstock.broker.topics.topic import Topic
    from penstock.session import Buffers, Transport

SERVER_VERSION: Final = "0.9.0"
"""The release of apache-iggy whose protocol this is: clients look at it."""


def _load_kernels() -> None:
    for module in ("cut", "older_polls"):
        import_module(f"penstock.records.iggy.{module}")


class Client(call.Client):
    """The client at the other end of one connection."""

    def __init__(self, server: IggyServer, transport: Transport, number: int) -> None:
        super().__init__(server.broker, transport)
        self.server = server
        self.id = number
        self.silence = Silence(self._is_member, self._end)
        self.has_heartbeat = True
        """Whether it is never silent for long while it is there."""
        self.session: int | None = None
        """The number of what a login has begun."""
        self.last_write = LastWrite()
        self.sends = Queue()
        """Where a send waits for a log to be opened or for a look at its batch, and those behind it
        for their turn."""
        self.farewell: Callable[[], Buffers] = tuple
        """What the client hears when its session ends unasked."""

    @cached_property
    def may_stay_anonymous(self) -> bool:
        """Whether it may ask for more than a login without one, as clients of 2023 do."""
        allowed = self.broker.settings.iggy_anonymous
        if allowed is Anonymous.LOOPBACK:
            return ip_address(self.transport.local_address[0]).is_loopback
        return allowed is Anonymous.ALWAYS

    def join(self, group: TopicGroup) -> None:
        """Become a member of a group, for as long as there are signs of life."""
        group.join(self)
        if self.has_heartbeat:
            self.silence.watch()

    def _is_member(self) -> bool:
        return bool(self.broker.topic_groups.of_member(self))

    def _end(self) -> None:
        self.broker.topic_groups.leave_all(self)
        self.transport.write(self.farewell())
        self.transport.close(f"a member said nothing for {limits.IGGY_SILENCE_SECONDS} seconds")


class Call(call.Call[Client]):
    """One request's circumstances; the version is that of its dialect."""

    __slots__ = ()


class IggyServer:
    """The Iggy side of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.clients: dict[int, Client] = {}
        self.started_at_us = wall_clock.now_us()
        self.started = time.monotonic()
        self._client_ids = itertools.count(1)
        self._sessions = itertools.count(1)
        self._turns: WeakKeyDictionary[Topic, itertools.count[int]] = WeakKeyDictionary()
        self.kept = Kept(broker.memory)
        """What polls have read last."""
        self.restated = RestatedPolls(broker.memory)
        """What polls of older dialects were answered with last."""
        self.gathers_snapshot = False
        """Whether a client's snapshot is under way."""
        self._preparing = asyncio.Lock()
        self.is_prepared = False
        """Whether `prepare` has nothing left to do."""

    async def prepare(self) -> None:
        """Load what checks and cuts batches; where no run has compiled it yet, that takes seconds.

        All other conversions take longer, and clients give up after 30 seconds: they are not waited
        for here.
        """
        if self.is_prepared:
            return
        async with self._preparing:
            await asyncio.to_thread(_load_kernels)
            self.is_prepared = True

    def connect(self, transport: Transport) -> Client:
        """Give a connection its number."""
        client = Client(self, transport, next(self._client_ids))
        self.clients[client.id] = client
        return client

    def disconnect(self, client: Client) -> None:
        """Forget a connection and take it out of its groups."""
        client.silence.stop()
        self.log_out(client)
        self.clients.pop(client.id, None)

    def log_in(self, client: Client) -> int:
        """Begin a session of the root user, or go on with the one that there is; return its number.

        Who logs in again stays in its groups, as with apache-iggy; its requests count from 1 again.
        """
        client.last_write.forget()
        client.principal = Principal(PrincipalKind.USER, self.broker.settings.iggy_user)
        if client.session is None:
            client.session = next(self._sessions)
        return client.session

    def log_out(self, client: Client) -> None:
        """End a session; its groups go on without it."""
        client.principal = ANONYMOUS
        client.session = None
        client.last_write.forget()
        self.broker.topic_groups.leave_all(client)

    def next_turn(self, topic: Topic) -> int:
        """A number that goes up by one a balanced send to a topic, whichever connection asks."""
        return next(self._turns.setdefault(topic, itertools.count()))
