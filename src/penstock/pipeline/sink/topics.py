"""What tasks and driver ask a broker about the topics that they write to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.kafka.client import KafkaError
from penstock.clients.kafka.transactions import END_EPOCH
from penstock.kafka.wire import ErrorCode
from penstock.pipeline.sink.errors import SinkError

if TYPE_CHECKING:
    from penstock.clients.asking import Ask
    from penstock.clients.kafka.client import KafkaClient

_TRIES: Final = 50
_UNKNOWN: Final = 20
_PAUSE_SECONDS: Final = 0.1
"""How often, and how long after one another, a topic is looked for that is just being made."""


class Topic(NamedTuple):
    """What is known of a topic that is written to."""

    name: str
    partitions: int
    max_batch_bytes: int
    limit: str = "its max.message.bytes"
    """Whose setting that is."""


def no_topic(name: str, servers: str, what: str = "no such topic") -> SinkError:
    """Return what to say where nothing is made for who writes."""
    return SinkError(
        f"topic {name!r}: {what} at {servers}: create it, or correct the option or column topic"
    )


class BrokerTopics:
    """Topics by their Kafka names. One that is missing is made, where the broker makes topics."""

    def __init__(self, client: KafkaClient, servers: str, ask: Ask) -> None:
        self._client = client
        self._servers = servers
        self._ask = ask
        self._found: dict[str, Topic] = {}

    def find(self, name: str) -> Topic:
        """Return a topic. Raises SinkError where there is none, KafkaError and OSError."""
        if name not in self._found:
            self._found[name] = self._described(name)
        return self._found[name]

    def _described(self, name: str) -> Topic:
        try:
            for turn in range(_TRIES):
                try:
                    (found,) = self._ask(lambda: self._client.topics([name], create=True))
                    break
                except KafkaError as error:
                    if not self._may_come(error.code, turn):
                        raise
                    time.sleep(_PAUSE_SECONDS)
            else:
                raise SinkError(f"topic {name!r} at {self._servers} has no leader")
            config = self._ask(lambda: self._client.topic_config(name))
        except KafkaError as error:
            if error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise  # Whoever says it in words names the rights that are needed.
            raise SinkError(self._refusal(name, error)) from error
        largest = config.get("max.message.bytes")
        assert largest is not None, "every topic has a largest batch"
        return Topic(name, len(found.partitions), int(largest))

    def _may_come(self, code: int, turn: int) -> bool:
        """Whether a topic may be there a moment later, because it is just being made."""
        if code == ErrorCode.LEADER_NOT_AVAILABLE:
            return True
        # Apache Kafka answers so while it makes a topic, as it does where it makes none.
        is_elsewhere = END_EPOCH.key not in self._client.api_versions()
        return is_elsewhere and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and turn < _UNKNOWN

    def _refusal(self, name: str, error: KafkaError) -> str:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return (
                f"there is no topic {name!r} at {self._servers}, and the broker makes none by "
                "itself: create it, or correct the option or column topic"
            )
        return f"topic {name!r} at {self._servers} can't be written to: {error}"
