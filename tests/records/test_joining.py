"""A chunked message is made whole from whatever runs of batches its reader comes by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from penstock.log.header import read_header, stamp, walk
from penstock.records import Wanted, join_in_steps, join_messages
from penstock.records.pulsar.chunks import is_chunk
from stored_batches import Record, chunk_batch, kafka_batch

PARTS = [b"first part, ", b"second part, ", b"third part"]


class Stored(NamedTuple):
    batches: list[bytearray]

    def earlier(self, start: int, end: int) -> Iterator[bytearray]:
        """Every batch is a run of its own."""
        for batch in self.batches:
            header = read_header(batch)
            if header.next_offset > start and header.base_offset < end:
                yield batch


def store(*batches: bytes | bytearray) -> Stored:
    stored = []
    for offset, batch in enumerate(batches):
        stored.append(bytearray(batch))
        stamp(stored[-1], offset, 0)
    return Stored(stored)


def chunk(index: int, uuid: str = "maker-1") -> bytes:
    return chunk_batch(PARTS, index, uuid)


def other() -> bytes:
    return bytes(kafka_batch([Record(b"v")]))


def test_the_message_stands_where_its_last_chunk_was() -> None:
    stored = store(chunk(0), other(), chunk(0, "maker-2"), chunk(1), other(), chunk(2), other())
    run = memoryview(b"".join(stored.batches[4:]))
    pieces = list(join_messages(run, stored.earlier))
    offsets = [header.base_offset for piece in pieces for _, header in walk(piece)]
    assert offsets == [4, 5, 6]
    assert is_chunk(pieces[1]) is None
    assert bytes(pieces[1]).endswith(b"".join(PARTS))


def test_a_run_without_chunks_is_one_piece_and_nothing_is_read() -> None:
    run = memoryview(b"".join(store(other(), other()).batches))
    (piece,) = join_in_steps(run)
    assert piece is run or piece == run


def test_what_is_missing_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    stored = store(chunk(0), other(), chunk(2), other())
    pieces = list(join_messages(memoryview(b"".join(stored.batches[1:])), stored.earlier))
    assert [header.base_offset for piece in pieces for _, header in walk(piece)] == [1, 3]
    assert "1 of its 3 chunks are not in the log" in caplog.text


def test_each_step_asks_for_what_follows_the_run_before() -> None:
    stored = store(other(), chunk(0), other(), chunk(1), other(), chunk(2))
    joining = join_in_steps(memoryview(stored.batches[5]))
    asked = []
    step = next(joining)
    while isinstance(step, Wanted):
        asked.append(tuple(step))
        step = joining.send(stored.batches[step.start])
    assert asked == [(start, 5) for start in range(5)]
    assert bytes(step).endswith(b"".join(PARTS))
    with pytest.raises(StopIteration):
        next(joining)
