"""Goal: what one client of an older dialect was answered with is not made again for the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from iggy_dialog import Dialog, producer_batch
from older_iggy import OlderDialog, of_0_8, poll
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


async def test_the_next_one_finds_it_made(filled: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, early = await of_0_8(filled), await of_0_8(filled), OlderDialog(filled)
    made = [await poll(first, offset, COUNT) for offset in (0, COUNT)]
    with counted(monkeypatch) as done:
        assert [await poll(second, offset, COUNT) for offset in (0, COUNT)] == made
        assert done == []
        # Another part, or another dialect, is another answer.
        assert await poll(second, 1, COUNT) != made[0]
        assert await poll(early, 0, COUNT, early=True) != made[0]
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
    before = await poll(reader, 0, COUNT)
    partition = filled.topics.all()[0].partitions[0]
    await partition.trim(COUNT)
    assert await poll(reader, 0, COUNT) == await poll(reader, COUNT, COUNT) != before


async def test_what_is_kept_is_bounded_and_counted(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await of_0_8(filled)
    size = len(await poll(reader, 1, COUNT))
    before = filled.memory.caches.used
    monkeypatch.setattr(restated, "IGGY_RESTATED_KEPT_BYTES", 2 * size)
    monkeypatch.setattr(restated, "IGGY_RESTATED_KEPT_AT_FIRST_BYTES", 2 * size)
    for offset in range(COUNT):
        await poll(reader, offset, COUNT)
    assert filled.memory.caches.used <= before + size
    with counted(monkeypatch) as done:
        await poll(reader, COUNT - 1, COUNT)
        assert done == []
        await poll(reader, 0, COUNT)
        assert "restated" in done


async def test_large_ones_are_kept_once_they_are_asked_for_again(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the next answer is made where the last one was."""
    reader = await of_0_8(filled)
    size = len(await poll(reader, 0, COUNT))
    filled.memory._empty_caches()
    monkeypatch.setattr(restated, "IGGY_RESTATED_KEPT_BYTES", 2 * size)
    monkeypatch.setattr(restated, "IGGY_RESTATED_KEPT_AT_FIRST_BYTES", size // 2)

    async def is_made(offset: int) -> bool:
        with counted(monkeypatch) as done:
            await poll(reader, offset, COUNT)
        return "restated" in done

    assert await is_made(1)
    held = filled.memory.caches.used
    assert await is_made(1), "nobody had asked for it again"
    assert filled.memory.caches.used > held
    assert not await is_made(1)
    assert await is_made(2)
    assert not await is_made(2), "one that was asked for again is kept, so the next are"
    for offset in (3, 4, 5):
        assert await is_made(offset)
    assert await is_made(6), "what nobody asked for again has made room"
    assert await is_made(6)
    assert not await is_made(6)
