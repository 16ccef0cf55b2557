"""Who is told when topics of a namespace come and go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.broker.topics.names import NamespaceName
    from penstock.broker.topics.topic import Topic


class TopicListener(Protocol):
    """Called in the turn of the change: what takes long is done later."""

    def appeared(self, topic: Topic) -> None:
        """The topic was made, was given this name, or has other partitions than it had."""

    def gone(self, topic: Topic) -> None:
        """The topic was deleted, or loses the name or the partitions that it has now."""


class TopicChanges:
    """The listeners of each namespace."""

    def __init__(self) -> None:
        self._listeners: dict[NamespaceName, dict[TopicListener, None]] = {}
        self.listing = asyncio.Lock()
        """Held by the one listener that lists a whole namespace after a change: many at a time
        would take everybody's time."""

    def listen(self, namespace: NamespaceName, listener: TopicListener) -> None:
        self._listeners.setdefault(namespace, {})[listener] = None

    def stop(self, namespace: NamespaceName, listener: TopicListener) -> None:
        """Tell a listener nothing any more; one that is not there is no matter."""
        of_namespace = self._listeners.get(namespace, {})
        of_namespace.pop(listener, None)
        if not of_namespace:
            self._listeners.pop(namespace, None)

    def appeared(self, topic: Topic) -> None:
        for listener in tuple(self._listeners.get(topic.name.in_namespace, ())):
            listener.appeared(topic)

    def gone(self, topic: Topic) -> None:
        for listener in tuple(self._listeners.get(topic.name.in_namespace, ())):
            listener.gone(topic)
