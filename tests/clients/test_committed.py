"""Leaving out aborted transactions by what the broker names, as Kafka's own consumers do it."""

from __future__ import annotations

import random

import pytest

from penstock.clients.kafka.committed import CommittedBatches
from penstock.clients.kafka.fetched import Fetched
from penstock.log.header import ATTRIBUTE_CONTROL, read_header, stamp, walk
from penstock.records.kafka.control import end_marker
from transactional import batch


class Log:
    """Batches of random transactions, and a broker's answers about them."""

    def __init__(self, seed: int, steps: int) -> None:
        chance = random.Random(seed)
        self.batches: list[bytes] = []
        self.aborted: list[tuple[int, int, int]] = []
        """First offset, producer id and last offset, in the order in which they ended."""
        self.kept: list[int] = []
        self.asked: list[int] = []
        self._open: dict[int, list[int]] = {}
        for _ in range(steps):
            producer_id = chance.randrange(4)
            if producer_id in self._open and chance.random() < 0.4:
                self._end(producer_id, committed=chance.random() < 0.5)
            elif chance.random() < 0.2:
                self.kept.append(self._add(batch(transactional=False)))
            else:
                self._open.setdefault(producer_id, []).append(self._add(batch(producer_id)))
        for producer_id in list(self._open):
            self._end(producer_id, committed=False)
        self.kept.sort()

    def _add(self, made: bytearray) -> int:
        stamp(made, len(self.batches), 0)
        self.batches.append(bytes(made))
        return len(self.batches) - 1

    def _end(self, producer_id: int, *, committed: bool) -> None:
        written = self._open.pop(producer_id)
        marker = end_marker(producer_id, 0, committed=committed, coordinator_epoch=0)
        last = self._add(marker)
        if committed:
            self.kept += written
        else:
            self.aborted.append((written[0], producer_id, last))

    def fetch(self, most: int, offset: int) -> Fetched:
        """Answer as brokers do: with some batches, and the aborted ones that they have parts of."""
        self.asked.append(offset)
        end = min(offset + most, len(self.batches))
        read = memoryview(b"".join(self.batches[offset:end]))
        named = [
            (first, producer_id)
            for first, producer_id, last in self.aborted
            if last >= offset and first < end
        ]
        return Fetched(read, 0, 0, len(self.batches), named)


@pytest.mark.parametrize("most", [1000, 7, 1])
@pytest.mark.parametrize("seed", range(10))
def test_what_was_aborted_is_left_out_wherever_a_read_begins(seed: int, most: int) -> None:
    log = Log(seed, 80)
    chance = random.Random(seed)
    for start in range(0, len(log.batches), 7):
        committed = CommittedBatches(lambda offset: log.fetch(most, offset))
        kept: list[int] = []
        position = start
        while position < len(log.batches):
            following = position + chance.randint(1, 9)
            run = b"".join(log.batches[position:following])
            for view in committed.keep(run):
                kept += [header.base_offset for _, header in walk(view)]
            position = following
        assert kept == [offset for offset in log.kept if offset >= start]


def test_the_broker_is_asked_once_and_never_for_what_is_of_no_transaction() -> None:
    log = Log(1, 200)
    committed = CommittedBatches(lambda offset: log.fetch(1000, offset))
    plain = bytes(batch(transactional=False))
    assert [bytes(view) for view in committed.keep(plain)] == [plain]
    marker = end_marker(1, 0, committed=True, coordinator_epoch=0)
    assert read_header(marker).attributes & ATTRIBUTE_CONTROL
    assert list(committed.keep(marker)) == []
    assert log.asked == []
    list(committed.keep(b"".join(log.batches)))
    assert len(log.asked) == 1
