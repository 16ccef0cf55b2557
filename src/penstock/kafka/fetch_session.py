"""A fetch session: what a consumer reads, so that it says only what changes, and hears only that.

It belongs to its connection and ends with it (KIP-227). A client that speaks of another one, or out
of turn, is refused and begins anew.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode, api
from penstock.memory import Holding
from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from penstock.broker.topics.partition import Partition
    from penstock.broker.transactions.isolation import Isolation
    from penstock.kafka.wire.messages import FetchRequest
    from penstock.memory import Account
    from penstock.pace import Pace

    Key: TypeAlias = tuple[str | UUID, int]

_TOPIC: Final = api("Fetch").request.FetchTopic
_NOTHING: Final = -1
_LAST_NUMBER: Final = (1 << 31) - 1
_WATCHED_BYTES: Final = 450
"""About what one partition of a session takes of memory."""


class Watched:
    """One partition of a session, and what its client heard of it last."""

    __slots__ = ("asked", "heard_end", "heard_start", "is_new", "key", "partition", "topic")

    def __init__(
        self, key: Key, topic: FetchRequest.FetchTopic, asked: FetchRequest.FetchPartition
    ) -> None:
        self.key = key
        self.topic = topic
        self.asked = asked
        self.partition: Partition | None = None
        """None before it is looked up, and after it could not be read."""
        self.is_new = True
        """Whether the client said something of it that was not looked at yet."""
        self.heard_end = self.heard_start = _NOTHING

    def has_news(self, isolation: Isolation) -> bool:
        """Whether there is something to read, or to say."""
        readable = self.bytes_readable(isolation)
        if readable is None or readable > 0:
            return True
        assert self.partition is not None, "it would have to be looked up"
        return (
            self.heard_end != self.partition.safe_offset
            or self.heard_start != self.partition.start_offset
        )

    def bytes_readable(self, isolation: Isolation) -> int | None:
        """Return at most how much there is to read; None where only a read can tell."""
        partition = self.partition
        if self.is_new or partition is None or partition.deleted or not partition.is_open:
            return None
        offset = self.asked.fetch_offset
        return partition.bytes_from(offset) if offset < partition.readable_end(isolation) else 0

    def look_up(self, partition: Partition | None) -> None:
        """Take over what there is to read, with None what can't be read."""
        self.partition = partition
        self.is_new = False

    def hear(self, end_offset: int, start_offset: int) -> bool:
        """Take over what an answer says; return whether that is new to the client."""
        before = self.heard_end, self.heard_start
        self.heard_end, self.heard_start = end_offset, start_offset
        return before != (end_offset, start_offset)


class FetchSession:
    """The partitions that one connection reads, in the order in which they are served.

    What it takes of memory is on `account`. Topics are named in it by their ids, or by their names.
    """

    def __init__(self, account: Account, *, by_id: bool) -> None:
        self.id = secrets.randbelow(_LAST_NUMBER) + 1
        self.held = Holding(account)
        self._epoch = 0
        """The one of the last request."""
        self._by_id = by_id
        self._watched: dict[Key, Watched] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def begin(self, request: FetchRequest, *, by_id: bool) -> None:
        """Begin with a request. Raises RequestError for one that is not the session's next."""
        if request.session_id != self.id:
            raise RequestError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        following = 1 if self._epoch == _LAST_NUMBER else self._epoch + 1
        if request.session_epoch != following:
            raise RequestError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if by_id != self._by_id:
            raise RequestError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        self._epoch = following

    def update(self, request: FetchRequest) -> Iterator[None]:
        """Add, change and forget what the request says."""
        for topic in request.topics:
            # The request's own struct has all of its partitions.
            own = _TOPIC(topic=topic.topic, topic_id=topic.topic_id, partitions=[])
            for asked in topic.partitions:
                key = self._name(topic), asked.partition
                watched = self._watched.get(key)
                if watched is None:
                    self._watched[key] = Watched(key, own, asked)
                else:
                    watched.asked = asked
                    watched.is_new = True
                yield
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self._watched.pop((self._name(forgotten), index), None)
                yield
        self.held.follow(len(self._watched) * _WATCHED_BYTES)

    def all(self) -> Iterator[Watched]:
        """In the order in which they are served."""
        return iter(self._watched.values())

    async def news(self, isolation: Isolation, pace: Pace) -> list[Watched]:
        """Return those of which there may be something to say."""
        found = []
        for watched in self._watched.values():
            if watched.has_news(isolation):
                found.append(watched)
            if pace.is_over():
                await pace.others()
        return found

    async def suffices(self, min_bytes: int, isolation: Isolation, pace: Pace) -> bool:
        """Whether there is so much to read, or a partition that only a read tells something of."""
        readable = 0
        for watched in self._watched.values():
            more = watched.bytes_readable(isolation)
            if more is None:
                return True
            readable += more
            if pace.is_over():
                await pace.others()
        return readable >= min_bytes

    def put_last(self, watched: Watched) -> None:
        """Have a partition served after the others, for it was served now."""
        self._watched[watched.key] = self._watched.pop(watched.key)

    def close(self) -> None:
        """Nothing is asked of it any more."""
        watched, self._watched = self._watched, {}
        self.held.set(0)
        drop(watched)

    def _name(self, topic: FetchRequest.FetchTopic | FetchRequest.ForgottenTopic) -> str | UUID:
        return topic.topic_id if self._by_id else topic.topic
