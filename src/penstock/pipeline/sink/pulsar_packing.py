"""Rows of Arrow as Pulsar's batches, cut as Pulsar's own clients cut theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.clients.pulsar.producing import Outgoing
from penstock.log.header import HEADER_SIZE, Magic, walk
from penstock.pipeline.sink.cutting import Cutter
from penstock.pipeline.sink.options import PULSAR_CODECS
from penstock.records import field
from penstock.records.batch_headers import restate_times
from penstock.records.columns import Columns
from penstock.records.headers.escapes import escape
from penstock.records.pulsar.compression import compress_pulsar
from penstock.records.pulsar.encode import encode_pulsar
from penstock.records.pulsar.entry import build_entry, parse_entry
from penstock.records.pulsar.headers import PulsarFacts
from penstock.records.pulsar.metadata_pb2 import MessageMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from penstock.clients.pulsar.producing import Sender
    from penstock.pipeline.sink.cutting import Cut, Piece
    from penstock.pipeline.sink.placing import Placing
    from penstock.records.columns import Numbers
    from penstock.session import Buffer

BATCH_MESSAGES: Final = 1000
"""What Pulsar's clients put into a batch at most (`batchingMaxMessages`)."""


class PulsarPacker:
    """One task's rows on their way to its producers.

    Messages of a partition are numbered one after the other, so that what is done again has the
    same numbers where rows come in the same order. `name_of` returns the name of a topic's
    partition.
    """

    def __init__(
        self,
        placing: Placing,
        codec: str,
        batch_bytes: int,
        name_of: Callable[[str, int], str],
        sender: Sender,
    ) -> None:
        self._cutter = Cutter(placing, batch_bytes, BATCH_MESSAGES)
        self._codec = PULSAR_CODECS[codec]
        self._name_of = name_of
        self._sender = sender
        self._sent: dict[str, int] = {}

    def entries(self, rows: pa.RecordBatch) -> Iterator[Outgoing]:
        """Yield what is sent at once. Raises SinkError."""
        for piece in self._cutter.pieces(rows):
            yield from self._of_piece(piece)

    def _of_piece(self, piece: Piece) -> Iterator[Outgoing]:
        topics = [self._name_of(cut.topic.name, cut.partition) for cut in piece.cuts]
        firsts = [self._number(topic, cut) for topic, cut in zip(topics, piece.cuts, strict=True)]
        made = self._encoded(piece, firsts)
        parts = zip(piece.cuts, topics, firsts, walk(made), strict=True)
        for cut, topic, first, (position, header) in parts:
            entry: Buffer = made[position + HEADER_SIZE : position + header.size]
            if self._codec:
                entry = self._compressed(memoryview(entry))
            if len(entry) > cut.topic.max_batch_bytes:
                raise piece.too_large(cut, len(entry))
            yield Outgoing(topic, first, cut.end - cut.first, entry)

    def _number(self, topic: str, cut: Cut) -> int:
        """Return the number of a batch's first message."""
        sent = self._sent.get(topic, 0)
        self._sent[topic] = sent + cut.end - cut.first
        return self._sender.first + sent

    def _encoded(self, piece: Piece, firsts: list[int]) -> memoryview:
        """Return the batches, each with the log's header before its entry."""
        rows, table = piece.rows, piece.table
        table[field.LAST_DELTA] = table[field.RECORDS] - 1
        times = rows.records[field.TIMESTAMP]
        times -= times % 1000
        event_times = np.where(times == rows.written_at, 0, np.maximum(times, 0) // 1000)
        columns = Columns(
            rows.data, rows.header_data, rows.records, rows.headers, rows.header_start, table
        )
        columns = escape(columns, Magic.PULSAR)
        restate_times(table, columns.records)
        return encode_pulsar(columns, self._facts(piece, firsts, event_times))

    def _facts(self, piece: Piece, firsts: list[int], event_times: Numbers) -> PulsarFacts:
        counts = piece.table[field.RECORDS]
        count = len(event_times)
        within = np.arange(count) - np.repeat(piece.table[field.FIRST_RECORD], counts)
        return PulsarFacts(
            producers=[self._sender.name.encode()] * len(firsts),
            metadata=[
                self._metadata(first + int(rows) - 1)
                for first, rows in zip(firsts, counts, strict=True)
            ],
            publish_times=np.full(len(firsts), piece.rows.written_at // 1000),
            event_times=event_times,
            sequences=np.repeat(np.array(firsts, np.int64), counts) + within,
            ordering_starts=np.zeros(count, np.int64),
            ordering_sizes=np.full(count, -1),
            null_keys=np.zeros(count, np.bool_),
        )

    def _metadata(self, last: int) -> bytes:
        """Return what else the metadata of a batch says."""
        metadata = MessageMetadata(highest_sequence_id=last)
        self._sender.sign(metadata)
        return metadata.SerializePartialToString()

    def _compressed(self, made: memoryview) -> bytearray:
        entry = parse_entry(made)
        metadata = entry.metadata
        metadata.compression = self._codec
        metadata.uncompressed_size = len(entry.payload)
        return build_entry(metadata, compress_pulsar(self._codec, entry.payload))
