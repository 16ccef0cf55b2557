"""Rows of Arrow as Kafka's record batches, in the requests in which they are sent."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from penstock.clients.kafka.transactions import ProducedBatch
from penstock.log.header import (
    ATTRIBUTE_TRANSACTIONAL,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    PREFIX_SIZE,
    Magic,
    build_header,
)
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.options import CODECS
from penstock.pipeline.sink.rows import rows_of
from penstock.records import field
from penstock.records.batch_headers import Encoded, restate_times
from penstock.records.kafka.compression import compress_kafka
from penstock.records.kafka.encode import measure_kafka, write_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.clients.kafka.transactions import TransactionalProducer
    from penstock.pipeline.sink.placing import Placed, Placing
    from penstock.pipeline.sink.rows import Rows
    from penstock.pipeline.sink.topics import Topic
    from penstock.records.columns import Numbers
    from penstock.session import Buffer

PIECE_BYTES: Final = 8 << 20
"""Arrow bytes of rows that are encoded at once, and become one or a few requests."""

_LARGEST: Final = 64 << 20
"""Bytes of a row above which it is not tried how small it gets."""

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17


class _Cut(NamedTuple):
    """Rows, in the order in which they are written, that become one batch."""

    topic: Topic
    partition: int
    first: int
    end: int


class Packer:
    """One task's rows on their way to a producer."""

    def __init__(self, placing: Placing, codec: str, batch_bytes: int) -> None:
        self._placing = placing
        self._codec = CODECS[codec]
        self._batch_bytes = batch_bytes
        self._rows = 0

    def requests(
        self, rows: pa.RecordBatch, producer: TransactionalProducer
    ) -> Iterator[list[ProducedBatch]]:
        """Yield what is sent at once: at most one batch for each partition. Raises SinkError."""
        pieces = max(1, -(-rows.nbytes // PIECE_BYTES))
        size = max(1, -(-rows.num_rows // pieces))
        for first in range(0, rows.num_rows, size):
            yield from self._of_piece(rows.slice(first, size), producer)

    def _of_piece(
        self, piece: pa.RecordBatch, producer: TransactionalProducer
    ) -> Iterator[list[ProducedBatch]]:
        rows = rows_of(piece, self._rows)
        placed = self._placing.place(piece, rows.keys, self._rows)
        order = np.lexsort((placed.partitions, placed.topic_of))
        rows = rows.in_order(order)
        bounds = rows.bounds
        cuts = list(_cuts(placed, order, bounds, self._batch_bytes))
        self._check(cuts, order, bounds)
        table = _table(cuts)
        encoded = _encoded(rows, table)
        requests: list[list[ProducedBatch]] = []
        batches: dict[tuple[str, int], int] = {}
        for index, cut in enumerate(cuts):
            place = cut.topic.name, cut.partition
            turn = batches.get(place, 0)
            batches[place] = turn + 1
            if turn == len(requests):
                requests.append([])
            sequence = producer.sequence(*place, cut.end - cut.first)
            base, latest = table[[field.BASE_TIMESTAMP, field.MAX_TIMESTAMP], index].tolist()
            _, producer_id, epoch = producer.state
            head = _Head(base, latest, producer_id, epoch, sequence, cut.end - cut.first)
            batch = self._batch(encoded, index, head)
            if len(batch) > cut.topic.max_batch_bytes:
                raise self._too_large(cut, order, len(batch))
            requests[turn].append(ProducedBatch(*place, batch))
        self._rows += piece.num_rows
        yield from requests

    def _check(self, cuts: list[_Cut], order: Numbers, bounds: Numbers) -> None:
        """Refuse a row that is far too large before memory is taken for what it becomes."""
        for cut in cuts:
            size = int(bounds[cut.first])
            if size > max(cut.topic.max_batch_bytes, _LARGEST):
                raise self._too_large(cut, order, size)

    def _too_large(self, cut: _Cut, order: Numbers, size: int) -> SinkError:
        row = self._rows + int(order[cut.first])
        return SinkError(
            f"row {row}, for {cut.topic.name}-{cut.partition}: {size} bytes are more than the "
            f"topic takes: its max.message.bytes is {cut.topic.max_batch_bytes}"
        )

    def _batch(self, encoded: Encoded, index: int, head: _Head) -> Buffer:
        start, size = int(encoded.body_starts[index]), int(encoded.bodies[index])
        view = encoded.out.data
        if not self._codec:
            return _headed(view[start - HEADER_SIZE : start + size], head)
        body = compress_kafka(self._codec, view[start : start + size])
        header = build_header(
            Magic.KAFKA, body, attributes=ATTRIBUTE_TRANSACTIONAL | self._codec, **head._asdict()
        )
        return header + body


class _Head(NamedTuple):
    """What a batch's header says, by the names of `build_header`."""

    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def _headed(batch: memoryview, head: _Head) -> memoryview:
    """Write the header into the room in front of a body that is not compressed."""
    numbers = (0, len(batch) - PREFIX_SIZE, 0, Magic.KAFKA, 0, ATTRIBUTE_TRANSACTIONAL)
    HEADER.pack_into(batch, 0, *numbers, head.record_count - 1, *head)
    _CRC.pack_into(batch, _CRC_AT, crc32c(batch[CRC_START:]))
    return batch


def _cuts(placed: Placed, order: Numbers, bounds: Numbers, batch_bytes: int) -> Iterator[_Cut]:
    """Yield runs of rows of one partition, as many as a batch may have bytes, one at the least."""
    topic_of, partitions = placed.topic_of[order], placed.partitions[order]
    changes = np.flatnonzero(np.diff(topic_of) | np.diff(partitions)) + 1
    before = np.concatenate(([0], np.cumsum(bounds)))
    for first, end in zip([0, *changes.tolist()], [*changes.tolist(), len(order)], strict=True):
        topic, partition = placed.topics[topic_of[first]], int(partitions[first])
        most = min(batch_bytes, topic.max_batch_bytes) - HEADER_SIZE
        start = first
        while start < end:
            fitting = int(np.searchsorted(before, before[start] + most, side="right")) - 1
            stop = min(max(fitting, start + 1), end)
            yield _Cut(topic, partition, start, stop)
            start = stop


def _table(cuts: list[_Cut]) -> Numbers:
    """Return the batches as a table of `field`s; their times are not known yet."""
    table = np.zeros((field.BATCH_FIELDS, len(cuts)), np.int64)
    firsts = np.array([cut.first for cut in cuts], np.int64)
    counts = np.array([cut.end - cut.first for cut in cuts], np.int64)
    table[field.FIRST_RECORD] = firsts
    table[field.RECORDS] = table[field.COUNT] = counts
    return table


def _encoded(rows: Rows, table: Numbers) -> Encoded:
    """Return the bodies of batches, each behind the room for its header."""
    counts, firsts = table[field.RECORDS], table[field.FIRST_RECORD]
    rows.records[field.OFFSET] = np.arange(len(rows.records[0])) - np.repeat(firsts, counts)
    restate_times(table, rows.records)
    sizes = np.empty(rows.records.shape[1], np.int64)
    bodies = np.empty(len(counts), np.int64)
    tables = (rows.records, rows.headers, rows.header_start)
    measure_kafka(table, *tables, sizes, bodies)
    ends = np.cumsum(bodies + HEADER_SIZE)
    encoded = Encoded(np.empty(int(ends[-1]), np.uint8), ends - bodies, bodies)
    data = (rows.data, rows.header_data)
    write_kafka(*data, table, *tables, sizes, encoded.body_starts, encoded.out)
    return encoded
