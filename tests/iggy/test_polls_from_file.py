"""Goal: a poll's large batches are parts of the log's file, and the same as those that are read.

For older dialects they are read where they are laid out, and checked.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from iggy_dialog import STREAM, TOPIC, Dialog, producer_batch
from older_iggy import OlderDialog, of_0_8
from older_iggy import poll as older_poll
from parts import content, count_of_ranges
from penstock.broker.broker import Broker
from penstock.broker.topics.partition import Partition
from penstock.iggy import batches
from penstock.iggy.kept import Kept
from penstock.iggy.lookups import find_topic
from penstock.iggy.polling import Polled, Wanted, poll
from penstock.iggy.wire.errors import ErrorCode
from penstock.limits import FROM_FILE_BYTES, IGGY_POLL_BYTES
from penstock.log.batches import StoredBatch
from penstock.log.errors import LogReadError

if TYPE_CHECKING:
    from penstock.broker.reading.conversion_cache import Taken

SMALL, LARGE = 100, 50_000
MIXED = (LARGE, LARGE, SMALL, LARGE, LARGE)


async def filled(broker: Broker, *sizes: int) -> Partition:
    """A partition with a batch of two messages for each size, in bytes of one payload."""
    dialog = Dialog(broker)
    await dialog.set_up()
    chance = random.Random(3)
    for size in sizes:
        batch = producer_batch(chance.randbytes(size), chance.randbytes(size))
        assert not (await dialog.produce(batch, 2)).rejected
    dialog.session.close()
    return find_topic(broker, STREAM, TOPIC).partition(0)


def ranges(polled: Polled) -> int:
    return count_of_ranges(polled.parts)


def damage_third_of_four(folder: Path, at: int) -> None:
    (path,) = folder.rglob("00000000000000000000.log")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 + at)
        file.write(b"\x7f")


async def polled_of(partition: Partition, wanted: Wanted, *, from_file: bool = False) -> Polled:
    """Poll with nothing kept of what others have read."""
    return await poll(Kept(partition.memory), partition, wanted, from_file=from_file)


async def both(partition: Partition, start: int, count: int) -> Polled:
    """Poll in both ways, which return the same; return what came as ranges."""
    read = await polled_of(partition, Wanted(start, count))
    polled = await polled_of(partition, Wanted(start, count), from_file=True)
    assert ranges(read) == 0
    assert content(polled.parts) == content(read.parts)
    assert (polled.messages, polled.last_offset) == (read.messages, read.last_offset)
    assert polled.size == read.size
    return polled


async def test_large_batches_that_are_wanted_whole_are_ranges(broker: Broker) -> None:
    partition = await filled(broker, *[LARGE] * 10)
    polled = await both(partition, 0, 20)
    assert (ranges(polled), polled.held_bytes) == (10, 0)
    for start, count, expected in ((0, 7, 3), (2, 4, 2), (3, 8, 3), (19, 5, 0), (5, 1, 0)):
        assert ranges(await both(partition, start, count)) == expected, (start, count)


async def test_small_batches_are_read(broker: Broker) -> None:
    partition = await filled(broker, LARGE, SMALL, SMALL, LARGE, FROM_FILE_BYTES // 2, SMALL)
    for start in range(12):
        for count in (1, 2, 5, 100):
            polled = await both(partition, start, count)
            assert count >= 2 or not ranges(polled)
    assert ranges(await both(partition, 0, 100)) >= 1


async def test_a_reply_of_ranges_is_bounded_too(broker: Broker) -> None:
    partition = await filled(broker, *[400_000] * 22)
    polled = await both(partition, 0, 1_000)
    assert IGGY_POLL_BYTES - 2 * 401_000 < polled.size <= IGGY_POLL_BYTES
    assert ranges(polled) == len(polled.parts) == polled.messages // 2


async def test_a_poll_from_a_time_reads_the_times(broker: Broker) -> None:
    partition = await filled(broker, LARGE, LARGE)
    polled = await polled_of(partition, Wanted(0, 10, 1 << 60), from_file=True)
    assert polled.messages == 0


@pytest.mark.parametrize("at", [0, 10])
async def test_what_turned_bad_is_not_handed_out_from_the_file(
    broker: Broker, tmp_path: Path, at: int
) -> None:
    partition = await filled(broker, *[LARGE] * 4)
    await both(partition, 0, 8)
    damage_third_of_four(tmp_path, at)
    polled = await polled_of(partition, Wanted(0, 8), from_file=True)
    assert ranges(polled) <= 2
    assert polled.messages == 4


async def test_what_is_given_up_behind_what_was_read_is_passed_over(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = await filled(broker, SMALL, LARGE, LARGE, LARGE)
    read_on = partition.read_on

    async def read_and_trim(*asked: Any) -> Taken:
        found = await read_on(*asked)
        await partition.trim(6)
        return found

    monkeypatch.setattr(partition, "read_on", read_and_trim)
    polled = await polled_of(partition, Wanted(0, 10), from_file=True)
    assert (polled.messages, polled.last_offset) == (4, 7)


def reads_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the batches that are read where they are laid out, by their offsets."""
    found: list[int] = []
    read = StoredBatch.read_now

    def noted(self: StoredBatch, target: memoryview) -> None:
        found.append(self.header.base_offset)
        read(self, target)

    monkeypatch.setattr(StoredBatch, "read_now", noted)
    return found


@pytest.mark.parametrize("at_once", [1 << 20, 100])
async def test_they_are_the_same_as_those_that_are_read(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """On the event loop, and in a thread."""
    await filled(broker, *MIXED)
    monkeypatch.setattr(batches, "IGGY_RESTATED_AT_ONCE_BYTES", at_once)
    reads = reads_of(monkeypatch)
    for early in (False, True):
        for start, count in ((0, 10), (1, 10), (2, 3), (3, 4), (7, 3), (9, 1)):
            first = OlderDialog(broker) if early else await of_0_8(broker)
            second = OlderDialog(broker) if early else await of_0_8(broker)
            found = await older_poll(first, start, count, early=early)
            broker.memory._empty_caches()
            with monkeypatch.context() as patched:
                patched.setattr(StoredBatch, "read_now", _refused)
                assert await older_poll(second, start, count, early=early) == found
            broker.memory._empty_caches()
    assert {0, 2, 8} <= set(reads)


def _refused(self: StoredBatch, _: memoryview) -> None:
    raise LogReadError(f"batch {self.header.base_offset}")


async def test_what_was_damaged_since_it_was_verified_is_not_said_to_be_sound(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(broker, *[LARGE] * 4)
    reader = await of_0_8(broker)
    sound = await older_poll(reader, 0, 4)
    damage_third_of_four(tmp_path, at=1_000)
    reads = reads_of(monkeypatch)
    assert (await older_poll(reader, 0, 8))[16:] == sound[16:]
    assert reads == [0, 2, 4]
    place = b"\1\1\4\1\0\0\0" + b"\2\1s" + b"\2\1t" + b"\1" + bytes(4)
    asked = place + b"\1" + (4).to_bytes(8, "little") + (2).to_bytes(4, "little") + b"\0"
    status, body = await reader.ask(100, asked)
    assert (status, body) == (ErrorCode.CANNOT_READ_MESSAGE, b"")


async def test_what_is_not_in_memory_is_waited_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(broker, LARGE, LARGE)
    read = os.preadv
    asked: list[int] = []

    def reading(descriptor: int, targets: tuple[memoryview], *rest: int) -> int:
        asked.append(len(targets[0]))
        if len(targets[0]) > LARGE:
            raise BlockingIOError("it is on the disk")
        return read(descriptor, targets, *rest)

    reader = await of_0_8(broker)
    found = await older_poll(reader, 0, 4)
    broker.memory._empty_caches()
    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", reading)
        assert await older_poll(await of_0_8(broker), 0, 4) == found
    assert max(asked) > LARGE
