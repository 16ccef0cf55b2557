"""Goal: what a few bytes of log inflate to is in memory a batch at a time, however many there are.

Method: batches that inflate to as much as one may, and the peak of what Python's allocator gave.
"""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest

from compacted_batches import DAY, NOBODY, NOW
from penstock.limits import MIB
from penstock.records import decoding
from penstock.records.compaction.aborted import Transactions
from penstock.records.compaction.choosing import Rules
from penstock.records.compaction.cleaning import Pass, left_out, remember
from penstock.records.compaction.offset_map import OffsetMap
from stored_batches import Record, kafka_batch

_GZIP = 1
_BATCHES = 40


def test_batches_that_inflate_much_are_held_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "INFLATED_BATCH_BYTES", 3 * MIB)
    make = partial(kafka_batch, [Record(bytes(2 * MIB), b"key")], codec=_GZIP)
    batches = memoryview(b"".join(make(offset=offset) for offset in range(_BATCHES)))
    offsets = OffsetMap(1 << 16, _BATCHES)
    whole = Pass(offsets, Transactions(), Rules(NOW, DAY, False, NOBODY))
    tracemalloc.start()
    try:
        assert remember(batches, offsets, Transactions()) is None
        left = list(whole.clean(batches))
        assert sum(len(found) for found in left_out(batches, offsets)) == _BATCHES - 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert whole.tally.records_kept == 1
    assert np.concatenate([each.last_offsets for each in left])[-1] == _BATCHES - 1
    assert peak < _BATCHES * MIB // 2
