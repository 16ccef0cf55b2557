"""Goal: what a few bytes of log inflate to is in memory a batch at a time, however many there are.

Method: batches that inflate to as much as one may, and the peak of what Python's allocator gave.
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest

from compacted_batches import DAY, NOBODY, NOW
from penstock.limits import COMPACTION_INFLATED_TIMES, INFLATED_BATCH_BYTES, MIB
from penstock.records import decoding
from penstock.records.columns import Columns
from penstock.records.compaction import cleaning
from penstock.records.compaction.aborted import Transactions
from penstock.records.compaction.choosing import Rules
from penstock.records.compaction.cleaning import (
    InflatesTooMuchError,
    Inflating,
    Pass,
    left_out,
    remember,
)
from penstock.records.compaction.offset_map import OffsetMap
from penstock.records.errors import MalformedBatchError, OverLimitError
from stored_batches import Record, kafka_batch

_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4
_BATCHES = 40


def bombs(count: int) -> memoryview:
    make = partial(kafka_batch, [Record(bytes(2 * MIB), b"key")], codec=_GZIP)
    return memoryview(b"".join(make(offset=offset) for offset in range(count)))


def test_batches_that_inflate_much_are_held_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "INFLATED_BATCH_BYTES", 3 * MIB)
    batches, inflating = bombs(_BATCHES), Inflating(3 * MIB)
    offsets = OffsetMap(1 << 16, _BATCHES)
    whole = Pass(offsets, Transactions(), Rules(NOW, DAY, False, NOBODY), inflating)
    tracemalloc.start()
    try:
        assert remember(batches, offsets, Transactions(), inflating) is None
        left = list(whole.clean(batches))
        assert sum(len(found) for found in left_out(batches, offsets, inflating)) == _BATCHES - 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert whole.tally.records_kept == 1
    assert np.concatenate([each.last_offsets for each in left])[-1] == _BATCHES - 1
    assert peak < _BATCHES * MIB // 2


def test_a_log_that_inflates_much_more_than_others_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third one is too much: a batch is two KiB that inflate to two MiB."""
    monkeypatch.setattr(cleaning, "COMPACTION_INFLATED_BYTES", 5 * MIB)
    offsets, inflating = OffsetMap(1 << 16, _BATCHES), Inflating(3 * MIB)
    decoded: list[int] = []
    decode = cleaning.decode

    def counted(batches: memoryview, **words: Any) -> Columns:
        columns = decode(batches, **words)
        decoded.append(len(columns))
        return columns

    monkeypatch.setattr(cleaning, "decode", counted)
    with pytest.raises(InflatesTooMuchError):
        remember(bombs(_BATCHES), offsets, Transactions(), inflating)
    assert decoded == [1, 1, 1]


def test_what_deflates_as_text_does_is_never_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "COMPACTION_INFLATED_BYTES", 0)
    inflating = Inflating()
    for _ in range(100):
        inflating.passed(1_000, COMPACTION_INFLATED_TIMES * 1_000)
    with pytest.raises(InflatesTooMuchError):
        inflating.passed(0, 1)


@pytest.mark.parametrize("codec", [_GZIP, _SNAPPY, _LZ4, _ZSTD])
def test_who_may_hold_less_leaves_what_inflates_to_more_to_another(codec: int) -> None:
    batch = kafka_batch([Record(bytes(8 * MIB), b"key")], codec=codec)
    offsets = OffsetMap(1 << 16, 1)
    tracemalloc.start()
    try:
        with pytest.raises(OverLimitError):
            remember(memoryview(batch), offsets, Transactions(), Inflating(MIB))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB
    assert remember(memoryview(batch), offsets, Transactions(), Inflating(9 * MIB)) is None


def test_what_inflates_to_more_than_any_batch_may_stays_as_it_is() -> None:
    error = OverLimitError("too much")
    assert not Inflating(INFLATED_BATCH_BYTES).is_too_large(error)
    assert not Inflating(MIB).is_too_large(MalformedBatchError("no sense"))
    assert Inflating(MIB).is_too_large(error)
