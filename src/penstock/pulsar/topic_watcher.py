"""A client that is told which topics of a namespace come and go (PIP-145)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.pace import Pace
from penstock.pulsar.topic_lists import TopicPattern, topics_hash, topics_of
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandWatchTopicUpdate
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.broker.topics.catalogue import Topics
    from penstock.broker.topics.names import NamespaceName
    from penstock.broker.topics.topic import Topic

_GATHERED_SECONDS: Final = 0.1
"""How long changes are gathered before the client is told, for the hash is one of all topics."""
_RESTS: Final = 4
"""Times as long as a namespace was listed for, until it is listed for the next watcher."""


class WatcherOwner(Protocol):
    """The connection of a watcher."""

    def send(self, command: BaseCommand) -> None:
        """Say something that the client did not ask for."""


class _Change(NamedTuple):
    """A topic that came or went, by its name without partitions; 0 partitions are none."""

    name: str
    partitions: int
    is_there: bool


def _names(changes: Iterable[_Change]) -> Iterator[tuple[str, bool]]:
    for name, partitions, is_there in changes:
        if not partitions:
            yield name, is_there
        for index in range(partitions):
            yield f"{name}-partition-{index}", is_there


class TopicWatcher:
    """Implements penstock.broker.topics.changes.TopicListener, from `start` to `stop`."""

    def __init__(
        self,
        owner: WatcherOwner,
        watcher_id: int,
        topics: Topics,
        namespace: NamespaceName,
        pattern: TopicPattern,
    ) -> None:
        self._owner = owner
        self._id = watcher_id
        self._topics = topics
        self._namespace = namespace
        self._pattern = pattern
        self._changed: list[_Change] = []
        self._is_open = False
        self._gathering: asyncio.TimerHandle | None = None
        self._tasks = Tasks()

    def start(self) -> None:
        """Take note of what changes from now on."""
        self._topics.changes.listen(self._namespace, self)

    def stop(self) -> None:
        """The client wants to know no more, or is gone."""
        self._topics.changes.stop(self._namespace, self)
        if self._gathering is not None:
            self._gathering.cancel()
        self._tasks.cancel()

    async def names(self) -> list[str]:
        """Return the topics that there are."""
        return await topics_of(self._topics, self._namespace, self._pattern)

    async def _names_in_turn(self) -> list[str]:
        """As `names`, with the others that watch: all of them together take a part of the time."""
        async with self._topics.changes.listing:
            began = time.perf_counter()
            names = await self.names()
            await asyncio.sleep(_RESTS * (time.perf_counter() - began))
            return names

    def opened(self) -> None:
        """The client has heard which topics there are: tell it of changes."""
        self._is_open = True
        self._gather()

    def appeared(self, topic: Topic) -> None:
        """See TopicListener."""
        self._note(topic, is_there=True)

    def gone(self, topic: Topic) -> None:
        """See TopicListener."""
        self._note(topic, is_there=False)

    def _note(self, topic: Topic, *, is_there: bool) -> None:
        if not topic.partitions:
            return  # Pulsar has no such topic.
        count = len(topic.partitions) if topic.partitioned else 0
        self._changed.append(_Change(topic.name.pulsar, count, is_there))
        self._gather()

    def _gather(self) -> None:
        if self._is_open and self._changed and self._gathering is None:
            loop = asyncio.get_running_loop()
            self._gathering = loop.call_later(_GATHERED_SECONDS, self._say)

    def _say(self) -> None:
        self._tasks.start(self._told(), "telling a Pulsar client which topics there are")

    async def _told(self) -> None:
        changes, self._changed = self._changed, []
        # What happened last to a name counts.
        changed: dict[str, bool] = {}
        await Pace().each(_names(changes), lambda each: changed.update([each]))
        names = await self._pattern.matching(changed)
        if names:
            update = CommandWatchTopicUpdate(watcher_id=self._id)
            lists = {True: update.new_topics, False: update.deleted_topics}
            await Pace().each(names, lambda name: lists[changed[name]].append(name))
            update.topics_hash = topics_hash(await self._names_in_turn())
            self._owner.send(
                BaseCommand(type=BaseCommand.WATCH_TOPIC_UPDATE, watchTopicUpdate=update)
            )
        self._gathering = None
        self._gather()
