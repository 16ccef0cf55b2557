"""Stored batches of any encodings, read into columns in the order of the log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from penstock.limits import DECODED_ROWS, INFLATED_BATCH_BYTES
from penstock.log.header import ATTRIBUTE_LOG_APPEND_TIME, Magic, read_header, walk
from penstock.records import field
from penstock.records.batch_headers import malformed, read_batch_headers
from penstock.records.columns import Bytes, Columns, Numbers, as_bytes
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.headers.restoring import restore
from penstock.records.iggy.decode import IggyDecoder
from penstock.records.inflation import Inflation
from penstock.records.kafka.decode import KafkaDecoder
from penstock.records.kernels.times import LATEST_MILLISECOND
from penstock.records.pulsar.decode import PulsarDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.session import Buffer


_Result = TypeVar("_Result")


class Decoder(Protocol):
    """Reads the batches of one encoding in a run; those of others are left alone.

    It is made with the run's bytes and its table of batches, and then called from the top down.
    Every step raises MalformedBatchError.
    """

    @property
    def magic(self) -> Magic: ...

    def inflate(self, inflation: Inflation) -> None:
        """Inflate what is compressed, and have the tables say where it is then."""

    def room(self) -> Numbers:
        """Return how many records each batch has room for, whatever it declares."""

    def read_records(self, data: Bytes, records: Numbers, *, headers: bool) -> Numbers:
        """Fill the table of records; returns it, or a shorter one where some are left out. What
        only headers will say need not be noted where they are not wanted.
        """

    def read_headers(self, columns: Columns) -> None:
        """Fill the table of headers."""

    def complete(self, columns: Columns, *, headers: bool) -> Columns:
        """Return the columns with what this encoding alone says, as headers if they are wanted."""


_DECODERS: Final[dict[Magic, Callable[[Bytes, Numbers], Decoder]]] = {
    Magic.KAFKA: KafkaDecoder,
    Magic.PULSAR: PulsarDecoder,
    Magic.IGGY: IggyDecoder,
}


def decode(batches: Buffer, *, headers: bool = True, inflated_bytes: int | None = None) -> Columns:
    """As `penstock.records.decode`, of batches that inflate to so many bytes together at most; as
    many as one may where nothing is said.
    """
    data = as_bytes(batches)
    table = read_batch_headers(data)
    magics = set(np.flatnonzero(np.bincount(table[field.MAGIC])).tolist())
    if not magics <= _DECODERS.keys():
        raise MalformedBatchError("message sets are handed out only")
    decoders = [make(data, table) for magic, make in _DECODERS.items() if magic in magics]
    data = _inflated(data, decoders, inflated_bytes)
    _check_room(table, decoders)
    table[field.FIRST_RECORD, 1:] = np.cumsum(table[field.RECORDS])[:-1]
    records = np.empty((field.RECORD_FIELDS, _within_limit(table[field.RECORDS])), np.int64)
    for decoder in decoders:
        records = decoder.read_records(data, records, headers=headers)
    columns = Columns(data, data, records, *_headers_room(records), table)
    if columns.headers.shape[1]:
        for decoder in decoders:
            decoder.read_headers(columns)
    for decoder in decoders:
        columns = decoder.complete(columns, headers=headers)
    _set_append_times(columns)
    return restore(columns)


def decode_run(batches: Buffer, *, headers: bool = True) -> Iterator[Columns]:
    """As `penstock.records.decode_run`."""
    return in_pieces(memoryview(batches), partial(decode, headers=headers))


def in_pieces(batches: memoryview, work: Callable[[memoryview], _Result]) -> Iterator[_Result]:
    """Do something with a run of batches, or with its halves where the whole is over a limit.

    Raises what `work` raises.
    """
    try:
        result = work(batches)
    except OverLimitError as error:
        starts = [position for position, _ in walk(batches)]
        if len(starts) == 1:
            header = read_header(batches)
            raise OverLimitError(str(error), header.base_offset, header.next_offset) from error
    else:
        yield result
        return
    middle = starts[len(starts) // 2]
    yield from in_pieces(batches[:middle], work)
    yield from in_pieces(batches[middle:], work)


def _inflated(data: Bytes, decoders: list[Decoder], limit: int | None) -> Bytes:
    inflation = Inflation.behind(data, INFLATED_BATCH_BYTES if limit is None else limit)
    for decoder in decoders:
        decoder.inflate(inflation)
    return inflation.join()


def _check_room(table: Numbers, decoders: list[Decoder]) -> None:
    """Refuse counts that the bodies have no room for, before memory is taken for them."""
    for decoder in decoders:
        crowded = table[field.RECORDS] > np.maximum(decoder.room(), 0)
        crowded &= table[field.MAGIC] == decoder.magic
        if crowded.any():
            reason = "it declares more records than it has room for"
            raise malformed(table, int(np.argmax(crowded)), reason)


def _set_append_times(columns: Columns) -> None:
    """Give all messages of a batch that has the broker's time that time, whoever wrote them."""
    batches = columns.batches
    appended = (batches[field.ATTRIBUTES] & ATTRIBUTE_LOG_APPEND_TIME) != 0
    if not appended.any():
        return
    times = np.clip(batches[field.MAX_TIMESTAMP], 0, LATEST_MILLISECOND) * 1000
    counts = batches[field.RECORDS]
    np.copyto(columns.timestamps, np.repeat(times, counts), where=np.repeat(appended, counts))


def _headers_room(records: Numbers) -> tuple[Numbers, Numbers]:
    """Return an empty table of headers, and where those of each record will start."""
    counts = records[field.HEADER_COUNT]
    total = _within_limit(counts)
    header_start = np.zeros(records.shape[1] + 1, np.int64)
    if total:
        np.cumsum(counts, out=header_start[1:])
    return np.empty((field.HEADER_FIELDS, total), np.int64), header_start


def _within_limit(counts: Numbers) -> int:
    total = int(counts.sum())
    if total > DECODED_ROWS:
        raise OverLimitError(f"{total} records or headers at once, over {DECODED_ROWS}")
    return total
