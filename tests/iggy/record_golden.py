"""Record what apache-iggy's Python client and a broker say to each other, into `golden`.

Run it with the client that the files shall be named after: `python record_golden.py [ADDRESS]`,
from anywhere; the address is that of a broker, a new Penstock where none is named. A frame is a
line: C or S for who sent it, and its bytes in hexadecimal.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from apache_iggy import (
    Consumer,
    HeaderKey,
    HeaderValue,
    IggyClient,
    Partitioning,
    PollingStrategy,
    SendMessage,
)

from iggy_relay import recorded
from penstock.iggy.wire.frame import HEADER_SIZE, START_SIZE, frame_size

FOLDER = Path(__file__).parent / "golden"


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Return a frame of either side; its size ends the start of its head."""
    head = await reader.readexactly(START_SIZE)
    size = frame_size(head)
    assert size is not None
    assert size >= HEADER_SIZE
    return head + await reader.readexactly(size - START_SIZE)


async def play(address: str) -> None:
    """Use every command that the client has."""
    client = IggyClient(address)
    await client.connect()
    try:
        await client.login_user("iggy", "wrong")
    except RuntimeError:
        await client.login_user("iggy", "iggy")
    await client.ping()
    await client.get_stats()
    await client.get_users()
    await client.get_user("iggy")
    await client.describe_options("topic")
    await play_topics(client)
    await play_messages(client)
    await play_groups(client)
    await client.purge_topic("store", "bills")
    await client.purge_stream("store")
    await client.delete_topic("store", "bills")
    await client.delete_stream("store")
    await client.logout_user()


async def play_topics(client: IggyClient) -> None:
    """Make, change and look at streams and topics."""
    await client.create_stream("shop")
    await client.update_stream("shop", "store")
    await client.get_streams()
    await client.get_stream("missing")
    await client.create_topic("store", "orders", 2, options={"segment_size": "128 MiB"})
    await client.update_topic("store", "orders", "bills", compression_algorithm="gzip")
    await client.get_topics("store")
    await client.get_topic(0, 0)
    await client.create_partitions("store", "bills", 1)
    await client.delete_partitions("store", "bills", 1)


async def play_messages(client: IggyClient) -> None:
    """Send, and poll with every strategy."""
    headers = {
        HeaderKey.String("colour"): HeaderValue.String("green"),
        HeaderKey.Int32(7): HeaderValue.Bool(True),
    }
    message = SendMessage(b"\x00\xff", id=7, user_headers=headers)
    await client.send_messages("store", "bills", 0, [message, SendMessage("two")])
    await client.send_messages("store", "bills", Partitioning.balanced(), [SendMessage("b")])
    await client.send_messages(0, 0, Partitioning.messages_key("key-1"), [SendMessage("k")])
    for strategy in (
        PollingStrategy.First(),
        PollingStrategy.Last(),
        PollingStrategy.Offset(1),
        PollingStrategy.Timestamp(1),
        PollingStrategy.Next(),
    ):
        await client.poll_messages(
            "store",
            "bills",
            consumer=Consumer.Single("reader"),
            polling_strategy=strategy,
            count=1,
            auto_commit=True,
            partition_id=0,
        )


async def play_groups(client: IggyClient) -> None:
    """Make a group, join it, store offsets and leave it."""
    await client.create_consumer_group("store", "bills", "billing")
    await client.get_consumer_groups("store", "bills")
    await client.get_consumer_group("store", "bills", "billing")
    consumer = await client.consumer_group("billing", "store", "bills")
    async for _ in consumer.iter_messages():
        break
    await consumer.store_offset(0, 0)
    await consumer.delete_offset(0)
    await client.leave_consumer_group("store", "bills", "billing")
    await client.delete_consumer_group("store", "bills", "billing")


def main(address: str | None = None) -> None:
    """Record one session, with Penstock where no other broker is named."""
    lines = recorded(play, {"C": read_frame, "S": read_frame}, address)
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / f"apache-iggy-{version('apache-iggy')}.hex"
    file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
