"""What clients of 2013 to 2019 sent (see record_old_clients.py) is answered as they need it.

`tests/interop/test_old_clients.py` runs the clients themselves.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_dialog import WAIT_SECONDS, Dialog
from kafka_golden import OLD_GOLDEN
from message_sets import Message, read
from penstock import records
from penstock.kafka.wire import Struct

CLIENTS = sorted({each.client for each in OLD_GOLDEN})
TOPIC = "golden"
COUNT = 12
WRITTEN = [*((None, b"value %d" % n) for n in range(COUNT)), (b"key", b"with a key")]


def error_codes(answer: Any) -> set[int]:
    """All codes in an answer, however deep."""
    if isinstance(answer, list):
        return set().union(*map(error_codes, answer))
    if not isinstance(answer, Struct):
        return set()
    fields = {name: getattr(answer, name) for name in answer.__slots__}
    own = {int(value) for name, value in fields.items() if name == "error_code"}
    return own.union(*map(error_codes, fields.values()))


def test_all_clients_are_there() -> None:
    assert CLIENTS == [
        "kafka_0_8_2",
        "kafka_node",
        "kafka_python_0_9_5",
        "kafka_python_1_4",
        "no_kafka",
    ]
    for client in CLIENTS:
        assert {"Metadata", "Produce"} <= {each.api for each in OLD_GOLDEN if each.client == client}


async def seen_when_safe(dialog: Dialog) -> None:
    """Return when consumers see what was produced; nobody waits for that with 1 ack."""
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    partition = topic.partition(0)
    async with asyncio.timeout(WAIT_SECONDS):
        while partition.readable_end() < partition.end_offset:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_conversation_of_an_old_client(dialog: Dialog, client: str) -> None:
    await dialog.create_topic(TOPIC)
    seen: dict[int, Message] = {}
    produced = 0
    for _, name, version, frame in (each for each in OLD_GOLDEN if each.client == client):
        async with asyncio.timeout(WAIT_SECONDS):
            answer = await dialog.send_frame(name, version, memoryview(bytearray(frame)))
        assert error_codes(answer) <= {0}, (name, version)
        if name == "Fetch":
            (part,) = answer.responses[0].partitions
            seen |= {message.offset: message for _, message in read(bytes(part.records))}
        if name == "Produce":
            produced += 1
            await seen_when_safe(dialog)
    stored = await dialog.fetch(0, topic=TOPIC)
    columns = records.decode(bytes(stored.records))
    found = [(columns.key(row), columns.value(row)) for row in range(len(columns))]
    assert found == WRITTEN * (len(found) // len(WRITTEN))
    assert produced >= 2
    assert found
    if client != "no_kafka":
        assert [(seen[offset].key, seen[offset].value) for offset in range(len(found))] == found
