"""The demo's Pulsar client: pulsar-client."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pulsar

from penstock.demo.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.demo.flights import Event

TIMEOUT_MS: Final = 30_000


def write(address: str, topic: str, events: Iterable[Event], report: Callable[[int], None]) -> None:
    """Send all events and return when the broker has confirmed each of them."""
    failures: list[str] = []
    acknowledged = 0
    lock = threading.Lock()

    def delivered(result: Any, _message_id: Any) -> None:
        nonlocal acknowledged
        with lock:  # each partition's producer calls from its own thread
            if result != pulsar.Result.Ok:
                failures.append(str(result))
            acknowledged += 1
            report(acknowledged)

    with closing(_client(address)) as client:
        producer = client.create_producer(
            topic,
            block_if_queue_full=True,
            max_pending_messages=20_000,
            max_pending_messages_across_partitions=80_000,
            batching_enabled=True,
            batching_max_messages=5_000,
            batching_max_allowed_size_in_bytes=1 << 20,
            batching_max_publish_delay_ms=20,
            send_timeout_millis=TIMEOUT_MS,
        )
        for event in events:
            producer.send_async(event.value.encode(), delivered, partition_key=event.key)
        producer.flush()
        producer.close()
    if failures:
        raise RuntimeError(f"Pulsar: {len(failures)} events failed, the first with {failures[0]}")


def read(address: str, topic: str, report: Callable[[int], None]) -> Digest:
    """Read each partition from its beginning to the end that it has now."""
    digest = Digest()
    with closing(_client(address)) as client:
        for partition in client.get_topic_partitions(topic):
            reader = client.create_reader(
                partition, pulsar.MessageId.earliest, receiver_queue_size=10_000
            )
            while reader.has_message_available():
                message = reader.read_next(TIMEOUT_MS)
                digest.add(message.partition_key().encode(), message.data())
                report(digest.count)
            reader.close()
    return digest


def _client(address: str) -> pulsar.Client:
    # The client reports each connection it makes; only what went wrong is for the demo's log.
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    return pulsar.Client(f"pulsar://{address}", logger=logger)
