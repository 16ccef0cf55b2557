"""Goal: sends that don't wait for one another share flushes, are stored in their order, and stay
apart from all else that their client asks.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from iggy_dialog import CLIENT, STREAM, TOPIC, Dialog, polled_batches, producer_batch
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.iggy.last_write import LastWrite
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import frame, requests
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingKind,
    PollingStrategy,
)

PAYLOADS = [b"%d" % number for number in range(20)]
ALL = PollingStrategy(PollingKind.OFFSET, 0)


async def payloads(dialog: Dialog) -> list[bytes]:
    reader = Consumer(ConsumerKind.CONSUMER, Identifier("reader"))
    request = requests.PollMessages(reader, STREAM, TOPIC, 0, ALL, 1000, False)
    _, batches = polled_batches((await dialog.ask(Command.POLL_MESSAGES, request)).body)
    return [message[48:] for _, messages in batches for message in messages]


def frame_of(payload: bytes, number: int) -> bytes:
    batch = memoryview(producer_batch(payload))
    body = requests.SendMessages(22, STREAM, TOPIC, Partitioning.partition(0), 1, batch).encode()
    header = frame.RequestHeader(CLIENT, bytes(16), 0, number, Operation.SEND_MESSAGES, 1, 0)
    return b"".join(frame.build_request(header, body))


async def test_all_are_in_line_before_the_first_one_is_flushed(
    broker: Broker, dialog: Dialog
) -> None:
    await dialog.produce(producer_batch(b"before"), 1)  # It loads what checks batches.
    partition = find_topic(broker, STREAM, TOPIC).partition(0)
    sends = [asyncio.create_task(dialog.produce(producer_batch(each), 1)) for each in PAYLOADS]
    polled = asyncio.create_task(payloads(dialog))
    await asyncio.sleep(0)
    assert dialog.owed == len(sends) + 1
    assert partition.end_offset == 1 + len(sends)
    assert not any(answer.rejected for answer in await asyncio.gather(*sends))
    assert await polled == [b"before", *PAYLOADS], "what was asked behind them waits for them"


async def test_what_waits_for_its_log_is_stored_in_its_order(
    tmp_path: Path, broker: Broker, dialog: Dialog
) -> None:
    await dialog.produce(producer_batch(b"before"), 1)
    await broker.close()
    again = await Broker.open(tmp_path, BrokerSettings())
    dialog = Dialog(again)
    await dialog.log_in()
    await asyncio.gather(*(dialog.produce(producer_batch(each), 1) for each in PAYLOADS))
    assert await payloads(dialog) == [b"before", *PAYLOADS]
    await again.close()


async def test_one_that_comes_again_while_it_is_under_way_is_stored_once(dialog: Dialog) -> None:
    frames = [frame_of(b"a", 10), frame_of(b"b", 11), frame_of(b"b", 11), frame_of(b"c", 12)]
    _, second, again, _ = await asyncio.gather(*map(dialog.send, frames))
    assert second == again
    assert await payloads(dialog) == [b"a", b"b", b"c"]


def test_the_last_one_stays_known_where_one_before_it_ends_later() -> None:
    writes = LastWrite()
    for number in (1, 2):
        assert not writes.came(number)
        assert not writes.begins(number)
    writes.done(2, None, 0)
    writes.done(1, None, 0)
    assert writes.came(2)
    assert writes.begins(2)
