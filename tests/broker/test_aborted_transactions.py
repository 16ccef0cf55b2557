"""Goal: of millions of aborted transactions those are found that a reader meets, by few looks.

Method: each search beside a look at all of them, and counts of what is looked at.
"""

from __future__ import annotations

import random
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.transactions.aborted import AbortedTransactions
from penstock.broker.transactions.aborted_rows import ROW
from penstock.broker.transactions.aborted_stretch import (
    STRETCH,
    AbortedTransaction,
    PackedStretch,
)
from penstock.limits import ABORTED_TRANSACTION_BYTES, ABORTED_TRANSACTIONS_READ


def restored_from(snapshot: bytes) -> AbortedTransactions:
    restored = AbortedTransactions()
    list(restored.restore(memoryview(snapshot)))
    return restored


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_what_overlaps_is_found_as_by_looking_at_all(data: Any) -> None:
    random = data.draw(st.randoms(use_true_random=False))
    aborted, all_of_them = AbortedTransactions(), []
    offset = 0
    for number in range(random.choice([3, 100, 5000])):
        offset += random.randint(1, 3)
        first = max(0, offset - random.choice([1, 1, 1, 5, 300, offset]))
        each = AbortedTransaction(number, first, offset)
        aborted.add(each)
        all_of_them.append(each)
    if random.random() < 0.5:
        start = random.randint(0, offset)
        aborted.trim(start)
        all_of_them = [each for each in all_of_them if each.last_offset >= start]
        assert len(aborted) < len(all_of_them) + 4096
    else:
        start = 0
    if random.random() < 0.5:
        aborted = restored_from(b"".join(aborted.snapshot([])))
    for _ in range(20):
        begin = random.randint(start, offset + 1)
        until = begin + random.choice([0, 1, 10, 1000])
        expected = [
            each for each in all_of_them if each.last_offset >= begin and each.first_offset < until
        ]
        expected.sort(key=lambda each: each.first_offset)
        assert aborted.overlapping(begin, until) == expected
        assert [*ROW.iter_unpack(aborted.named(begin, until))] == [each[:2] for each in expected]
        near = aborted.near_end(begin, offset + 1)
        ended = sum(begin <= each.last_offset < near for each in all_of_them)
        assert ended <= ABORTED_TRANSACTIONS_READ
        assert near == offset + 1 or ended > ABORTED_TRANSACTIONS_READ - STRETCH


@pytest.mark.parametrize("seed", range(5))
def test_what_overlaps_is_found_when_much_was_forgotten(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many stretches, as millions of transactions have them."""
    monkeypatch.setattr("penstock.broker.transactions.aborted.STRETCH", 4)
    chance = random.Random(seed)
    aborted, left = AbortedTransactions(), []
    offset = start = 0
    for number in range(4_001):
        offset += chance.randint(1, 3)
        first = max(0, offset - chance.choice([1, 1, 1, 5, 300]))
        left.append(AbortedTransaction(number, first, offset))
        aborted.add(left[-1])
        if chance.random() < 0.01:
            start = chance.randint(start, offset + 1)
            aborted.trim(start)
            left = [each for each in left if each.last_offset >= start]
            begin = chance.randint(start, offset + 1)
            until = begin + chance.choice([1, 10, 1000])
            found = [e for e in left if e.last_offset >= begin and e.first_offset < until]
            found.sort(key=itemgetter(1))
            assert aborted.overlapping(begin, until) == found
    packed = aborted.packed(0, offset + 1).stretches[:-1]
    assert aborted.packed_bytes == sum(len(each.content) for each in packed)


def test_forgetting_and_keeping_many_takes_no_step_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aborted = AbortedTransactions()
    for number in range(100_000):
        aborted.add(AbortedTransaction(1, 2 * number, 2 * number + 1))
    there = {id(each.content) for each in aborted.packed(0, 200_000).stretches[:-1]}
    _, *pieces, _ = aborted.snapshot([])
    assert len(pieces) == 97
    assert {id(each) for each in pieces} == there, "nothing is put together, or copied"
    monkeypatch.setattr(AbortedTransactions, "_put", None)
    aborted.trim(100_000)
    assert aborted.overlapping(100_000, 100_004) == [
        AbortedTransaction(1, 100_000, 100_001),
        AbortedTransaction(1, 100_002, 100_003),
    ]


def test_a_search_among_many_looks_at_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    aborted = AbortedTransactions()
    for number in range(200_000):
        aborted.add(AbortedTransaction(1, 2 * number + 10, 2 * number + 11))
    looked_at = []
    unpacked = PackedStretch.unpacked
    monkeypatch.setattr(
        PackedStretch, "unpacked", lambda packed: looked_at.append(packed) or unpacked(packed)
    )
    # One that began before all others would have to be looked for among all that ended before it.
    assert aborted.overlapping(0, 12) == [AbortedTransaction(1, 10, 11)]
    assert aborted.overlapping(99_999, 100_001)[0].first_offset == 99_998
    assert aborted.near_end(200_000, 400_000) == 202_762
    assert aborted.overlapping(399_000, 400_000)[-1].last_offset == 399_999
    assert len(looked_at) <= 6


def test_millions_fit_into_a_checkpoint() -> None:
    aborted, count = AbortedTransactions(), 100_000
    for number in range(count):
        # Of a thousand producers at work, one after another ends what it began a while ago.
        aborted.add(AbortedTransaction(number * 7 % 1000, max(0, 3 * number - 3000), 3 * number))
    snapshot = b"".join(aborted.snapshot([]))
    assert len(snapshot) < 6 * count < ABORTED_TRANSACTION_BYTES / 100
    assert aborted.used_bytes < 8 * count
    restored = restored_from(snapshot)
    assert len(restored) == count
    restored.trim(280_000)
    assert len(restored) < count / 10
    expected = aborted.overlapping(280_000, 281_000)
    assert restored.overlapping(280_000, 281_000) == expected
    assert len(expected) > 1000
