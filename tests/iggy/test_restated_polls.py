"""Goal: what one client of an older dialect was answered with is not made again for the next."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from iggy_dialog import Dialog, producer_batch
from older_iggy import OlderDialog, named
from penstock.broker.broker import Broker
from penstock.broker.topics.partition import Partition
from penstock.iggy import restated
from penstock.iggy.handlers import code_100_poll_messages as handler

COUNT = 20
VALUE = bytes(2_000)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note each read of the log, and each answer whose messages are laid out anew."""
    done: list[str] = []
    read, restate = Partition.read_on, restated.restate

    async def reading(self: Partition, *rest: object) -> object:
        done.append("read")
        return await read(self, *rest)  # type: ignore[arg-type]

    def restating(*what: object) -> object:
        done.append("restated")
        return restate(*what)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "read_on", reading)
        patched.setattr(handler, "restate", restating)
        yield done


@pytest.fixture
async def filled(broker: Broker) -> Broker:
    """A topic with twice COUNT messages in two batches."""
    dialog = Dialog(broker)
    await dialog.set_up()
    for number in range(2):
        batch = producer_batch(*(bytes([number, each]) + VALUE for each in range(COUNT)))
        assert (await dialog.produce(batch, COUNT)).status == 0
    dialog.session.close()
    return broker


async def of_0_8(broker: Broker) -> OlderDialog:
    dialog = OlderDialog(broker)
    await dialog.log_in()
    return dialog


async def poll(
    dialog: OlderDialog, offset: int, count: int = COUNT, *, early: bool = False
) -> bytes:
    place = named("s") + named("t")
    who = struct.pack("<BI", 1, 1) if early else b"\1\1\4" + struct.pack("<I", 1)
    partition = struct.pack("<I", 1) if early else struct.pack("<BI", 1, 0)
    status, body = await dialog.ask(
        100, who + place + partition + struct.pack("<BQIB", 1, offset, count, 0)
    )
    assert status == 0
    return body


async def test_the_next_one_finds_it_made(filled: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, early = await of_0_8(filled), await of_0_8(filled), OlderDialog(filled)
    made = [await poll(first, offset) for offset in (0, COUNT)]
    with counted(monkeypatch) as done:
        assert [await poll(second, offset) for offset in (0, COUNT)] == made
        assert done == []
        # Another part, or another dialect, is another answer.
        assert await poll(second, 1) != made[0]
        assert await poll(early, 0, early=True) != made[0]
        assert done.count("restated") == 2


async def test_an_answer_with_less_than_was_wanted_may_become_more(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await of_0_8(filled)
    short = await poll(reader, COUNT, 2 * COUNT)
    producer = Dialog(filled)
    await producer.log_in()
    await producer.produce(producer_batch(VALUE), 1)
    assert len(await poll(reader, COUNT, 2 * COUNT)) > len(short)


async def test_what_was_given_up_is_not_answered_with(filled: Broker) -> None:
    reader = await of_0_8(filled)
    before = await poll(reader, 0)
    partition = filled.topics.all()[0].partitions[0]
    await partition.trim(COUNT)
    assert await poll(reader, 0) == await poll(reader, COUNT) != before


async def test_what_is_kept_is_bounded_and_counted(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await of_0_8(filled)
    size = len(await poll(reader, 1))
    before = filled.memory.caches.used
    monkeypatch.setattr(restated, "IGGY_RESTATED_KEPT_BYTES", 2 * size)
    monkeypatch.setattr(restated, "IGGY_RESTATED_KEPT_AT_FIRST_BYTES", 2 * size)
    for offset in range(COUNT):
        await poll(reader, offset)
    assert filled.memory.caches.used <= before + size
    with counted(monkeypatch) as done:
        await poll(reader, COUNT - 1)
        assert done == []
        await poll(reader, 0)
        assert "restated" in done
