"""A connection without a socket: frames in, and answers out in their order."""

from __future__ import annotations

import math
from collections.abc import Callable
from weakref import WeakKeyDictionary

from penstock.broker.broker import Broker
from penstock.memory import Memory
from penstock.server.answers import Answers
from penstock.server.pipeline import Pipeline
from penstock.server.turns import Turn
from penstock.session import Buffers, Session, Transport


class Conversation:
    """Drives one session. It is its pipeline's owner."""

    def __init__(
        self,
        session: Session,
        write: Callable[[Buffers], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.session = session
        self.failed = failed
        self.has_turns = True
        self.answers = Answers(write, Memory())
        self.pipeline = Pipeline(session, self.answers, self, "a test's conversation")

    def take(self, frame: bytes | bytearray | memoryview) -> None:
        """Hand a frame over, after its end was found."""
        view = memoryview(bytearray(frame))
        assert self.session.frame_size(view) == len(view)
        self.pipeline.take(view)

    def work_came(self) -> None:
        """See Owner: its turns never end, where it has any."""
        while self.has_turns and self.pipeline.has_work:
            self.pipeline.go_on(Turn(steps=1_000, until=math.inf))

    def settled(self) -> None:
        """See Owner."""


class SessionsOfBrokers:
    """Makes sessions of one protocol; those of one broker share what a server has them share."""

    def __init__(self, sessions: Callable[[Broker], Callable[[Transport], Session]]) -> None:
        self._sessions = sessions
        self._of_brokers: WeakKeyDictionary[Broker, Callable[[Transport], Session]]
        self._of_brokers = WeakKeyDictionary()

    def make(self, broker: Broker, transport: Transport) -> Session:
        if broker not in self._of_brokers:
            self._of_brokers[broker] = self._sessions(broker)
        return self._of_brokers[broker](transport)
