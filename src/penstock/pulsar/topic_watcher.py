"""A client that is told which topics of a namespace come and go (PIP-145)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Protocol

from penstock.pace import Pace
from penstock.pulsar.topic_lists import TopicPattern, topics_hash, topics_of
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandWatchTopicUpdate
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.topics.catalogue import Topics
    from penstock.broker.topics.changes import Change
    from penstock.broker.topics.names import NamespaceName

_RESTS: Final = 4
"""Times as long as a namespace was listed for, until it is listed for the next watcher."""


class WatcherOwner(Protocol):
    """The connection of a watcher."""

    def send(self, command: BaseCommand) -> None:
        """Say something that the client did not ask for."""


def _names(change: Change) -> list[str]:
    assert change.name is not None, "it is a change that follows another one"
    name = change.name.pulsar
    if not change.partitions:
        return [name]
    return [f"{name}-partition-{index}" for index in range(change.partitions)]


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
        self._heard: Change | None = None
        """The last change that the client was told of; None where it wants to hear of none."""
        self._is_open = False
        self._is_telling = False
        self._tasks = Tasks()

    def start(self) -> None:
        """Take note of what changes from now on."""
        self._heard = self._topics.changes.listen(self._namespace, self)

    def stop(self) -> None:
        """The client wants to know no more, or is gone."""
        self._topics.changes.stop(self._namespace, self)
        self._heard = None
        self._tasks.cancel()

    async def names(self) -> list[str]:
        """Return the topics that there are."""
        return await topics_of(self._topics, self._namespace, self._pattern)

    def opened(self) -> None:
        """The client has heard which topics there are: tell it of changes."""
        self._is_open = True
        self.changed()

    def changed(self) -> None:
        """See TopicListener."""
        if self._is_open and not self._is_telling and self._is_behind:
            self._is_telling = True
            self._tasks.start(self._told(), "telling a Pulsar client which topics there are")

    @property
    def _is_behind(self) -> bool:
        return self._heard is not None and self._heard.following is not None

    async def _told(self) -> None:
        """Tell the client in turn with all others that watch: together they take a part of the
        time, and one of them at a time has names in memory.
        """
        async with self._topics.changes.listing:
            began = time.perf_counter()
            update = await self._update()
            if update is not None:
                self._owner.send(
                    BaseCommand(type=BaseCommand.WATCH_TOPIC_UPDATE, watchTopicUpdate=update)
                )
            await asyncio.sleep(_RESTS * (time.perf_counter() - began))
        self._is_telling = False
        self.changed()

    async def _update(self) -> CommandWatchTopicUpdate | None:
        # What happened last to a name counts.
        changed: dict[str, bool] = {}
        await Pace().each(self._names_since(), lambda each: changed.update([each]))
        names = await self._pattern.matching(changed)
        if not names:
            return None
        update = CommandWatchTopicUpdate(watcher_id=self._id)
        lists = {True: update.new_topics, False: update.deleted_topics}
        await Pace().each(names, lambda name: lists[changed[name]].append(name))
        update.topics_hash = topics_hash(await self.names())
        return update

    def _names_since(self) -> Iterator[tuple[str, bool]]:
        """Go on to the last change there is, and yield the names of each."""
        while self._heard is not None and (change := self._heard.following) is not None:
            self._heard = change
            for name in _names(change):
                yield name, change.is_there
