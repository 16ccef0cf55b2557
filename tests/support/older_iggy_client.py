"""What a client of apache-iggy 0.5 to 0.8 does with a broker; run by the Python that has its wheel.

Usage: `older_iggy_client.py ADDRESS`. What it saw goes to standard output as JSON.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from importlib.metadata import version

from apache_iggy import IggyClient, PollingStrategy, SendMessage

VERSION = version("apache-iggy")
FIRST = 1 if VERSION.startswith("0.5.") else 0
"""The number of the first partition."""
STREAM = f"older-{VERSION}"


async def main(address: str) -> dict[str, object]:
    """Use every call that all four versions have."""
    client = IggyClient(address)
    await client.connect()
    seen: dict[str, object] = {"wrong password": await refusal(client.login_user("iggy", "wrong"))}
    await client.login_user("iggy", "iggy")
    await client.ping()
    await client.create_stream(STREAM)
    seen["twice"] = await refusal(client.create_stream(STREAM))
    await client.create_topic(STREAM, "t", 2, compression_algorithm="gzip")
    stream = await client.get_stream(STREAM)
    topic = await client.get_topic(stream.id, "t")
    seen["stream"] = [stream.name, stream.topics_count]
    seen["topic"] = [topic.id - FIRST, topic.name, topic.partitions_count]
    seen["missing"] = [await client.get_stream("missing"), await client.get_topic(STREAM, 99)]
    seen["no topic"] = await refusal(
        client.send_messages(STREAM, "missing", FIRST, [SendMessage("x")])
    )
    seen |= await messages(client)
    seen["group"] = await group(client)
    return seen


async def messages(client: IggyClient) -> dict[str, object]:
    """Send to both partitions and poll with every strategy."""
    for partition in (FIRST, FIRST + 1):
        sent = [SendMessage(f"{partition - FIRST}-{number}") for number in range(5)]
        await client.send_messages(STREAM, "t", partition, sent)
    await client.send_messages(STREAM, "t", FIRST, [SendMessage("é" * 1_000)])
    seen: dict[str, object] = {}
    for name, strategy in {
        "first": PollingStrategy.First(),
        "last": PollingStrategy.Last(),
        "offset": PollingStrategy.Offset(3),
        "timestamp": PollingStrategy.Timestamp(1),
        "next": PollingStrategy.Next(),
        "next again": PollingStrategy.Next(),
    }.items():
        polled = await client.poll_messages(STREAM, "t", FIRST, strategy, 4, True)
        assert all(message.id() and message.timestamp() > 10**15 for message in polled)
        seen[name] = [[message.offset(), message.payload()[:10].decode()] for message in polled]
        if name == "timestamp":
            await client.poll_messages(STREAM, "t", FIRST, PollingStrategy.Offset(0), 1, True)
    return seen


async def group(client: IggyClient) -> list[str]:
    """Have a consumer group read both partitions."""
    consumer = client.consumer_group(
        "readers", STREAM, "t", polling_strategy=PollingStrategy.Next(), batch_length=5
    )
    if inspect.isawaitable(consumer):  # From 0.7 on.
        consumer = await consumer
    read: list[str] = []
    done = asyncio.Event()

    async def take(message: object) -> None:
        read.append(message.payload()[:10].decode())  # type: ignore[attr-defined]
        if len(read) == 11:
            done.set()

    await asyncio.wait_for(consumer.consume_messages(take, done), 30)
    return sorted(read)


async def refusal(call: object) -> str:
    """Return what the client is told."""
    try:
        await call  # type: ignore[misc]
    except Exception as error:
        return str(error).partition("(")[0]
    return ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1]))))
    sys.stdout.flush()
    os._exit(0)  # The threads of some versions abort the interpreter when it ends.
