"""Goal: who goes over a range meets its aborted transactions as by looking at all of them, and has
few of them in memory at a time.
"""

from __future__ import annotations

import pickle
from random import Random
from typing import NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.transactions import aborted_range
from penstock.broker.transactions.aborted import AbortedTransactions
from penstock.broker.transactions.aborted_stretch import STRETCH, AbortedTransaction
from penstock.log.header import BatchHeader
from penstock.records.compaction.aborted import Transactions


class Batch(NamedTuple):
    """What is asked for of a batch's header."""

    producer_id: int
    base_offset: int


def in_turn(random: Random, count: int, producers: int) -> list[AbortedTransaction]:
    """Return transactions of which those of one producer follow one another, as they end."""
    found, offset, ended = [], 0, [-1] * producers
    for _ in range(count):
        offset += random.randint(1, 3)
        number = random.randrange(producers)
        first = random.randint(
            max(ended[number] + 1, offset - random.choice([1, 9, offset])), offset
        )
        found.append(AbortedTransaction(number * 1000 - 5, first, offset))
        ended[number] = offset
    return found


@pytest.mark.parametrize("window", [1, 2, 512])
@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False))
def test_each_batch_is_told_of_as_by_looking_at_all(window: int, random: Random) -> None:
    aborted, all_of_them = AbortedTransactions(), in_turn(random, random.choice([3, 5000]), 7)
    for each in all_of_them:
        aborted.add(each)
    end = all_of_them[-1].last_offset + random.choice([1, -1])
    start = random.randrange(end)
    found = pickle.loads(pickle.dumps(aborted.packed(start, end)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(aborted_range, "_WINDOW", window)
        transactions = Transactions(found.window)
        for offset in sorted(random.choices(range(start, end), k=300)):
            number = random.randrange(8) * 1000 - 5
            of_it = [each for each in all_of_them if each.producer_id == number]
            header = cast("BatchHeader", Batch(number, offset))
            is_data = any(first <= offset < last for _, first, last in of_it)
            assert transactions.is_aborted(header) == is_data
            is_marker = any(offset == last for *_, last in of_it)
            assert transactions.ends_nothing(header) != is_marker


@pytest.mark.parametrize("factor", [1, -(1 << 40)])
def test_numbers_of_any_size_are_told_of(factor: int) -> None:
    aborted = AbortedTransactions()
    all_of_them = [(number * factor, number << 33, (number << 33) + 1) for number in range(STRETCH)]
    for each in all_of_them:
        aborted.add(AbortedTransaction(*each))
    rows, end = aborted.packed(0, 1 << 60).window(0)
    assert [tuple(each) for each in rows.T.tolist()] == all_of_them
    assert end == 1 << 60


def test_few_are_unpacked_at_a_time_though_some_began_long_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aborted_range, "_WINDOW", 16)
    aborted, stretches = AbortedTransactions(), 3 * 16
    for number in range(stretches * STRETCH):
        first = number if number % STRETCH else 0
        aborted.add(AbortedTransaction(number % 5, first, number))
    found = aborted.packed(0, stretches * STRETCH)
    assert len(found.stretches) == stretches
    start, windows = 0, 0
    while start < found.end:
        rows, start = found.window(start)
        assert rows.shape[1] <= 16 * STRETCH + stretches
        windows += 1
    assert windows == 3
