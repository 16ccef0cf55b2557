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
from penstock.pipeline.sink.cutting import Cutter
from penstock.pipeline.sink.options import CODECS
from penstock.records import field
from penstock.records.batch_headers import Encoded, restate_times
from penstock.records.kafka.compression import compress_kafka
from penstock.records.kafka.encode import measure_kafka, write_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.clients.kafka.transactions import TransactionalProducer
    from penstock.pipeline.sink.cutting import Piece
    from penstock.pipeline.sink.placing import Placing
    from penstock.pipeline.sink.rows import Rows
    from penstock.records.columns import Numbers
    from penstock.session import Buffer

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17


class Packer:
    """One task's rows on their way to a producer."""

    def __init__(self, placing: Placing, codec: str, batch_bytes: int) -> None:
        self._cutter = Cutter(placing, batch_bytes)
        self._codec = CODECS[codec]

    def requests(
        self, rows: pa.RecordBatch, producer: TransactionalProducer
    ) -> Iterator[list[ProducedBatch]]:
        """Yield what is sent at once: at most one batch for each partition. Raises SinkError."""
        for piece in self._cutter.pieces(rows):
            yield from self._of_piece(piece, producer)

    def _of_piece(self, piece: Piece, producer: TransactionalProducer) -> list[list[ProducedBatch]]:
        encoded = _encoded(piece.rows, piece.table)
        requests: list[list[ProducedBatch]] = []
        batches: dict[tuple[str, int], int] = {}
        for index, cut in enumerate(piece.cuts):
            place = cut.topic.name, cut.partition
            turn = batches.get(place, 0)
            batches[place] = turn + 1
            if turn == len(requests):
                requests.append([])
            sequence = producer.sequence(*place, cut.end - cut.first)
            base, latest = piece.table[[field.BASE_TIMESTAMP, field.MAX_TIMESTAMP], index].tolist()
            _, producer_id, epoch = producer.state
            head = _Head(base, latest, producer_id, epoch, sequence, cut.end - cut.first)
            batch = self._batch(encoded, index, head)
            if len(batch) > cut.topic.max_batch_bytes:
                raise piece.too_large(cut, len(batch))
            requests[turn].append(ProducedBatch(*place, batch))
        return requests

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


def _encoded(rows: Rows, table: Numbers) -> Encoded:
    """Return the bodies of batches, each behind the room for its header."""
    restate_times(table, rows.records)
    sizes = np.empty(rows.records.shape[1], np.int64)
    bodies = np.empty(table.shape[1], np.int64)
    tables = (rows.records, rows.headers, rows.header_start)
    measure_kafka(table, *tables, sizes, bodies)
    ends = np.cumsum(bodies + HEADER_SIZE)
    encoded = Encoded(np.empty(int(ends[-1]), np.uint8), ends - bodies, bodies)
    data = (rows.data, rows.header_data)
    write_kafka(*data, table, *tables, sizes, encoded.body_starts, encoded.out)
    return encoded
