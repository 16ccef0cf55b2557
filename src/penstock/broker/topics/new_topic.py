"""What is asked for where a topic is to be made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.topics.config import NOTHING_SET

if TYPE_CHECKING:
    from penstock.broker.topics.config import Explicit
    from penstock.broker.topics.names import TopicName


class NewTopic(NamedTuple):
    """What is asked for by the client of `address`; `iggy_topic_id` is the number that it wants.

    Where `stream_id` is given, the namespace has to be there, and to be the stream of this number.
    """

    name: TopicName
    partitions: int
    partitioned: bool = True
    config: Explicit = NOTHING_SET
    address: str | None = None
    iggy_topic_id: int | None = None
    stream_id: int | None = None
