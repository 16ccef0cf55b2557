"""Short words for what tests with Pulsar clients do all the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from patience import PATIENCE_SECONDS, wait_until

RECEIVE_MS = 1000 * PATIENCE_SECONDS


def publish(producer: pulsar.Producer, payloads: list[bytes]) -> list[pulsar.MessageId]:
    """Send asynchronously, so that batches form; return the ids in order."""
    results: list[Any] = [None] * len(payloads)

    def note(index: int) -> Callable[[Any, Any], None]:
        def done(result: Any, message_id: Any) -> None:
            results[index] = (result, message_id)

        return done

    for index, payload in enumerate(payloads):
        producer.send_async(payload, note(index))
    producer.flush()
    wait_until(lambda: all(result is not None for result in results))
    assert {result for result, _ in results} == {pulsar.Result.Ok}
    return [message_id for _, message_id in results]


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [f"message {index}".encode() for index in range(first, first + count)]


def receive(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    return [consumer.receive(RECEIVE_MS) for _ in range(count)]


def payloads(messages: list[pulsar.Message]) -> list[bytes]:
    return [message.data() for message in messages]


def expect_nothing(consumer: pulsar.Consumer, milliseconds: int = 300) -> None:
    with pytest.raises(pulsar.Timeout):
        consumer.receive(milliseconds)


def read_all(reader: pulsar.Reader) -> list[pulsar.Message]:
    messages = []
    while reader.has_message_available():
        messages.append(reader.read_next(RECEIVE_MS))
    return messages
