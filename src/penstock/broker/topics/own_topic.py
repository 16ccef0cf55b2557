"""What a partition knows of the topic that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import uuid

    from penstock.broker.topics.config import TopicConfig
    from penstock.broker.topics.names import TopicName


class OwnTopic(Protocol):
    """A topic, without its partitions."""

    @property
    def id(self) -> uuid.UUID: ...

    @property
    def name(self) -> TopicName: ...

    @property
    def config(self) -> TopicConfig: ...

    @property
    def partitioned(self) -> bool: ...

    @property
    def created_at_us(self) -> int: ...
