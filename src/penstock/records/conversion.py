"""Batches of any encodings, handed out in one of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.log.header import Magic
from penstock.records import field
from penstock.records.batch_headers import read_batch_headers, restate_times
from penstock.records.columns import Columns, as_bytes
from penstock.records.decoding import decode, in_pieces
from penstock.records.encoding import Encoding, MessageSetMagic
from penstock.records.headers.escapes import escape
from penstock.records.iggy.encode import encode_iggy
from penstock.records.iggy.headers import add_iggy_kinds, take_iggy_headers
from penstock.records.kafka.encode import encode_kafka
from penstock.records.message_sets.encode import encode_message_sets
from penstock.records.pulsar.encode import encode_pulsar
from penstock.records.pulsar.gaps import gap_behind, split_at_gaps
from penstock.records.pulsar.headers import take_pulsar_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.session import Buffer

_PIECE_BYTES: Final = 4 << 20


def convert(batches: Buffer, target: Encoding) -> Iterator[Buffer]:
    """As `penstock.records.convert`."""
    for piece, is_native in _pieces(memoryview(batches), target):
        if is_native:
            yield piece
        else:
            yield from filter(None, in_pieces(piece, partial(_converted, target=target)))


def _converted(piece: memoryview, target: Encoding) -> memoryview:
    if isinstance(target, MessageSetMagic):
        return encode_message_sets(decode(piece, headers=False), target)
    return encode(decode(piece), target)


def encode(columns: Columns, target: Magic) -> memoryview:
    """Return the batches of `columns` with bodies in the encoding of `target`.

    The columns must not be used again.
    """
    columns.batches[field.COUNT] = columns.batches[field.RECORDS]
    if target == Magic.PULSAR:
        gap = gap_behind(columns)
        columns, facts = take_pulsar_headers(split_at_gaps(columns))
        columns = escape(add_iggy_kinds(columns, text=True), target)
        restate_times(columns.batches, columns.records)
        made = encode_pulsar(columns, facts)
        return memoryview(bytearray().join((made, gap))) if gap else made
    if target == Magic.IGGY:
        columns, ids = take_iggy_headers(columns)
        return encode_iggy(escape(columns, target), ids)
    columns = escape(add_iggy_kinds(columns, text=False), target)
    restate_times(columns.batches, columns.records)
    return encode_kafka(columns)


def _pieces(view: memoryview, target: Encoding) -> Iterator[tuple[memoryview, bool]]:
    """Cut a run where it changes between `target` and the others, and where it gets long."""
    table = read_batch_headers(as_bytes(view))
    native = table[field.MAGIC] == target
    first = 0
    for batch in range(1, len(native) + 1):
        start = int(table[field.POSITION, first])
        alike = batch < len(native) and native[batch] == native[first]
        if alike and (native[first] or table[field.BODY_END, batch] - start <= _PIECE_BYTES):
            continue
        yield view[start : int(table[field.BODY_END, batch - 1])], bool(native[first])
        first = batch
