"""Who is told when topics of a namespace come and go.

What happened is noted once, however many want to hear of it: each goes on from the last change that
it has heard of. They are told a moment later, in steps.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from penstock.pace import Pace
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from penstock.broker.topics.names import NamespaceName, TopicName
    from penstock.broker.topics.topic import Topic

_GATHERED_SECONDS: Final = 0.1
"""How long changes are gathered before anybody is told: each has more to do than to hear of one."""


class TopicListener(Protocol):
    """Called in a turn of the event loop: what takes long is done later."""

    def changed(self) -> None:
        """Topics came or went after the last change that the listener has heard of."""


class Change:
    """A topic that came or went; 0 partitions are none. It lasts as long as anybody goes on from it
    or from one before.
    """

    __slots__ = ("following", "is_there", "name", "partitions")

    def __init__(self, name: TopicName | None, partitions: int, *, is_there: bool) -> None:
        self.name = name
        """None of what was before all changes."""
        self.partitions = partitions
        self.is_there = is_there
        self.following: Change | None = None
        """What happened next in the namespace."""


class _Namespace:
    """One that somebody listens to."""

    def __init__(self) -> None:
        self.listeners: dict[TopicListener, None] = {}
        self.last = Change(None, 0, is_there=False)
        self.is_gathering = False


class TopicChanges:
    """The listeners of each namespace, and what they are to hear."""

    def __init__(self) -> None:
        self._namespaces: dict[NamespaceName, _Namespace] = {}
        self.listing = asyncio.Lock()
        """Held by the one listener that lists a whole namespace after a change: many at a time
        would take everybody's time.
        """

    def listen(self, namespace: NamespaceName, listener: TopicListener) -> Change:
        """Have a listener told; what is returned is what its first change will follow."""
        found = self._namespaces.setdefault(namespace, _Namespace())
        found.listeners[listener] = None
        return found.last

    def stop(self, namespace: NamespaceName, listener: TopicListener) -> None:
        """Tell a listener nothing any more; one that is not there is no matter."""
        found = self._namespaces.get(namespace)
        if found is not None:
            found.listeners.pop(listener, None)
            if not found.listeners:
                del self._namespaces[namespace]

    def appeared(self, topic: Topic) -> None:
        """The topic was made, was given this name, or has other partitions than it had."""
        self._note(topic, is_there=True)

    def gone(self, topic: Topic) -> None:
        """The topic was deleted, or loses the name or the partitions that it has now."""
        self._note(topic, is_there=False)

    def _note(self, topic: Topic, *, is_there: bool) -> None:
        found = self._namespaces.get(topic.name.in_namespace)
        if found is None or not topic.partitions:  # Who listens knows no topic without any.
            return
        count = len(topic.partitions) if topic.partitioned else 0
        found.last.following = Change(topic.name, count, is_there=is_there)
        found.last = found.last.following
        self._gather(found)

    def _gather(self, namespace: _Namespace) -> None:
        if not namespace.is_gathering:
            namespace.is_gathering = True
            loop = asyncio.get_running_loop()
            loop.call_later(_GATHERED_SECONDS, self._tell, namespace)

    def _tell(self, namespace: _Namespace) -> None:
        Tasks().start(self._told(namespace), "saying which topics came and went")

    async def _told(self, namespace: _Namespace) -> None:
        last = namespace.last
        await Pace().each(tuple(namespace.listeners), lambda listener: listener.changed())
        namespace.is_gathering = False
        if namespace.last is not last:
            self._gather(namespace)
