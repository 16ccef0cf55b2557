"""The demo's Iggy client: apache-iggy, whose Python interface is asynchronous."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Final

from apache_iggy import (
    Consumer,
    HeaderKey,
    HeaderValue,
    IggyClient,
    Partitioning,
    PollingStrategy,
    ReceiveMessage,
    SendMessage,
)

from penstock.demo.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.demo.flights import Event

STREAM: Final = "default"
"""The stream that holds what Kafka and Pulsar clients find without a namespace."""
USER: Final = "iggy"
PASSWORD: Final = "iggy"  # noqa: S105  # the default of every Iggy client, on loopback
KEY_HEADER: Final = HeaderKey.String("penstock.key")
"""Iggy's messages have no key; this header is read as one by the other two (docs/interop.md)."""
BATCH: Final = 1_000
POLL: Final = 5_000


def write(address: str, topic: str, events: Iterable[Event], report: Callable[[int], None]) -> None:
    """Send all events and return when the broker has confirmed each of them."""
    asyncio.run(_write(address, topic, events, report))


def read(address: str, topic: str, report: Callable[[int], None]) -> Digest:
    """Read each partition from its beginning to the end that it has now."""
    return asyncio.run(_read(address, topic, report))


async def _write(
    address: str, topic: str, events: Iterable[Event], report: Callable[[int], None]
) -> None:
    client = await _connect(address)
    partitions = await _partitions(client, topic)
    waiting: list[list[SendMessage]] = [[] for _ in range(partitions)]
    sent = 0

    async def send(partition: int) -> None:
        nonlocal sent
        batch, waiting[partition] = waiting[partition], []
        await client.send_messages(STREAM, topic, Partitioning.partition_id(partition), batch)
        sent += len(batch)
        report(sent)

    for event in events:
        key = event.key.encode()
        partition = zlib.crc32(key) % partitions
        headers = {KEY_HEADER: HeaderValue.Raw(key)}
        waiting[partition].append(SendMessage(event.value, headers))
        if len(waiting[partition]) >= BATCH:
            await send(partition)
    for partition in range(partitions):
        if waiting[partition]:
            await send(partition)


async def _read(address: str, topic: str, report: Callable[[int], None]) -> Digest:
    client = await _connect(address)
    digest = Digest()
    for partition in range(await _partitions(client, topic)):
        offset = 0
        while messages := await client.poll_messages(
            STREAM,
            topic,
            consumer=Consumer.Single("penstock-demo"),
            polling_strategy=PollingStrategy.Offset(offset),
            count=POLL,
            auto_commit=False,
            partition_id=partition,
        ):
            for message in messages:
                digest.add(_key(message), message.payload())
            offset = messages[-1].offset() + 1
            report(digest.count)
    return digest


def _key(message: ReceiveMessage) -> bytes:
    headers = message.user_headers()
    if headers is None or KEY_HEADER not in headers:
        raise LookupError(f"Iggy: the message at offset {message.offset()} has no key")
    key: bytes = headers[KEY_HEADER].value
    return key


async def _connect(address: str) -> IggyClient:
    client = IggyClient(address)
    await client.connect()
    await client.login_user(USER, PASSWORD)
    return client


async def _partitions(client: IggyClient, topic: str) -> int:
    found = await client.get_topic(STREAM, topic)
    if found is None:
        raise LookupError(f"Iggy: no topic {topic} in stream {STREAM}")
    return int(found.partitions_count)
