"""What readers see of a read is found in one step as it is one batch after the other."""

from __future__ import annotations

import random
from operator import itemgetter

import pytest

from compacted_batches import log_of, of_kafka, of_pulsar
from penstock import records
from penstock.broker.reading import visible
from penstock.broker.transactions.committed import Committed
from penstock.log.header import Magic, build_gap, read_header, set_transaction, walk
from penstock.records.kafka.control import end_marker
from stored_batches import Record

MESSAGES = of_pulsar([Record(b"1" * 40, b"a"), Record(b"2", b"b")])
MARKER = bytes(end_marker(9, 0, committed=False, coordinator_epoch=0)), 1
GAP = bytes(build_gap(Magic.KAFKA, 0, 5, 0)), 5


def of_transaction(producer_id: int) -> tuple[bytes, int]:
    batch = bytearray(of_kafka([Record(b"3", b"c")])[0])
    set_transaction(batch, producer_id, 0)
    return bytes(batch), 1


LOG = log_of(*[MESSAGES, of_transaction(9), MARKER, of_transaction(8), MARKER, GAP] * 300)
COMMITTED = Committed((9, first, first + 1) for first in range(2, 11 * 300, 11))


def seen(batches: bytes) -> visible.Seen:
    steps = list(visible.visible(memoryview(batches), COMMITTED, 0))
    ends = [step.end for step in steps]
    assert ends == sorted(ends)
    found = [each for step in steps for each in step.batches]
    return visible.Seen(found, [each for step in steps for each in step.gaps], ends[-1])


@pytest.mark.parametrize("batches", [LOG, log_of(*[MARKER] * 300), log_of(*[MESSAGES] * 512)])
async def test_both_ways_see_the_same(batches: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    await records.prepare()
    in_one_step = seen(batches)
    monkeypatch.setattr(records, "is_loaded", lambda: False)
    assert seen(batches) == in_one_step
    found, gaps, end = in_one_step
    covered = [*gaps, *((header.base_offset, header.next_offset) for _, header in found)]
    assert [offset for each in sorted(covered) for offset in range(*each)] == list(
        range(found[-1][1].next_offset if found else 0)
    )
    assert all(header == read_header(batches, position) for position, header in found)
    assert end == [header.next_offset for _, header in walk(batches)][-1]


async def test_nobody_sees_what_is_no_message_or_was_aborted() -> None:
    await records.prepare()
    found, _, end = seen(LOG)
    assert [header.base_offset % 11 for _, header in found] == [0, 4] * 300
    assert end == 11 * 300


@pytest.mark.parametrize("seed", range(20))
async def test_what_was_aborted_is_found_of_many_as_of_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await records.prepare()
    monkeypatch.setattr(visible, "_IN_ONE_STEP_BYTES", 0)
    chance = random.Random(seed)
    aborted: list[tuple[int, int, int]] = []
    for producer_id in chance.sample(range(40), chance.randrange(1, 20)):
        edges = sorted(chance.sample(range(400), 2 * chance.randrange(1, 8)))
        aborted += zip([producer_id] * len(edges), edges[::2], edges[1::2], strict=False)
    committed = Committed(sorted(aborted, key=itemgetter(1)))
    batches = log_of(*(of_transaction(chance.randrange(40)) for _ in range(400)))
    expected = [each for each in walk(batches) if not committed.hides(each[1])]
    assert 0 < len(expected) < 400
    steps = visible.visible(memoryview(batches), committed, 0)
    assert [each for step in steps for each in step.batches] == expected


async def test_of_many_all_are_seen_where_none_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    await records.prepare()
    monkeypatch.setattr(visible, "_IN_ONE_STEP_BYTES", 0)
    batches = log_of(*[of_transaction(9)] * 3)
    (step,) = visible.visible(memoryview(batches), Committed(), 0)
    assert step == ([*walk(batches)], [], 3)
