"""What tests do with a real client of apache-iggy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from apache_iggy import Consumer, IggyClient, Partitioning, PollingStrategy, SendMessage

from patience import PATIENCE_SECONDS

SECONDS = PATIENCE_SECONDS


async def connected(address: str, user: str = "iggy", password: str = "iggy") -> IggyClient:
    """Connect and log in."""
    client = IggyClient(address)
    await client.connect()
    await client.login_user(user, password)
    return client


async def send(
    client: IggyClient, stream: str, topic: str, *payloads: str | bytes, partition: int = 0
) -> int:
    """Send one batch and return the offset of its first message."""
    messages = [SendMessage(payload) for payload in payloads]
    response = await client.send_messages(
        stream, topic, Partitioning.partition_id(partition), messages
    )
    (confirmation,) = response.confirmations
    return confirmation.base_offset


async def poll(
    client: IggyClient,
    stream: str,
    topic: str,
    strategy: PollingStrategy,
    count: int = 100,
    *,
    partition: int | None = 0,
    consumer: Consumer | None = None,
    auto_commit: bool = False,
) -> list[tuple[int, bytes]]:
    """Poll once and return offsets and payloads."""
    messages = await client.poll_messages(
        stream,
        topic,
        consumer=consumer or Consumer.Single(1),
        polling_strategy=strategy,
        count=count,
        auto_commit=auto_commit,
        partition_id=partition,
    )
    return [(message.offset(), message.payload()) for message in messages]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return when the condition holds; fail when it does not in time."""
    async with asyncio.timeout(SECONDS):
        while not await condition():
            await asyncio.sleep(0.02)
