"""A record of Kafka's is read alike whatever room its numbers take.

Those before the key are read in one step where all three are short.
"""

from __future__ import annotations

from itertools import product

from penstock import records
from stored_batches import TIME, Record, kafka_batch, read

MILLISECOND = 1000
DELTAS = [0, 63, 64, -64, -65, 8191, 8192, 1 << 40]
KEYS = [None, b"", b"k", b"k" * 63, b"k" * 64, b"k" * 9000]


def test_short_and_long_numbers_stand_side_by_side() -> None:
    written = [Record(b"first")]
    written += [
        Record(b"value", key, time=TIME + delta * MILLISECOND)
        for _ in range(3)  # Offsets grow from one byte to two among them.
        for delta, key in product(DELTAS, KEYS)
    ]
    columns = records.decode(kafka_batch(written, 10))
    assert read(columns) == written
    assert columns.offsets.tolist() == list(range(10, 10 + len(written)))


def test_a_batch_may_end_behind_the_smallest_record() -> None:
    written = [Record(None), Record(None)]
    assert read(records.decode(kafka_batch(written))) == written
