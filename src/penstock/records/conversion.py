"""Batches of any encodings, handed out in one of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.log.header import Magic
from penstock.records import field
from penstock.records.batch_headers import read_batch_headers, restate_times
from penstock.records.columns import Columns, Mask, Numbers, as_bytes
from penstock.records.decoding import decode, in_pieces
from penstock.records.encoding import Encoding, MessageSetMagic
from penstock.records.headers.escapes import escape
from penstock.records.iggy.encode import encode_iggy
from penstock.records.iggy.headers import add_iggy_kinds, take_iggy_headers
from penstock.records.kafka.encode import encode_kafka
from penstock.records.message_sets.encode import encode_message_sets
from penstock.records.pulsar.encode import encode_pulsar
from penstock.records.pulsar.gaps import gap_behind, has_marked, split_at_gaps, without_marked
from penstock.records.pulsar.headers import take_pulsar_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.session import Buffer

_PIECE_BYTES: Final = 4 << 20
_APART_BYTES: Final = 64 << 10
"""A shorter stretch of batches that stay as they are is copied with what is made around it: a
conversion of its own between any two of them takes far longer, as between markers.
"""


def convert(batches: Buffer, target: Encoding) -> Iterator[Buffer]:
    """As `penstock.records.convert`."""
    for piece, is_native in _pieces(memoryview(batches), target):
        if is_native:
            yield piece
        else:
            yield from filter(None, in_pieces(piece, partial(_converted_among, target=target)))


def _converted_among(piece: memoryview, target: Encoding) -> memoryview:
    """Convert a run, in which batches of `target` stay as they are."""
    if target == Magic.PULSAR:
        piece = _replaced(piece, has_marked, without_marked)
    return _replaced(
        piece, lambda table: table[field.MAGIC] != target, lambda others: _converted(others, target)
    )


def _replaced(
    piece: memoryview,
    which: Callable[[Numbers], Mask],
    made_of: Callable[[memoryview], memoryview],
) -> memoryview:
    """Put what is made of some batches of a run in their place; the others stay as they are."""
    table = read_batch_headers(as_bytes(piece))
    stays = ~which(table)
    if stays.all():
        return piece
    if not stays.any():
        return made_of(piece)
    firsts, lasts = _stretches(stays)
    places = np.stack([table[field.POSITION, firsts], table[field.BODY_END, lasts]])
    own = stays[firsts]
    others = [piece[start:end] for start, end in places[:, ~own].T.tolist()]
    made = made_of(memoryview(b"".join(others)))
    offsets = table[field.BASE_OFFSET, firsts[own]]
    return _put_among(made, offsets, [piece[start:end] for start, end in places[:, own].T.tolist()])


def _put_among(made: memoryview, offsets: Numbers, stretches: Iterable[memoryview]) -> memoryview:
    """Return batches with stretches of others at their places, which begin at these offsets."""
    table = read_batch_headers(as_bytes(made))
    following = np.searchsorted(table[field.BASE_OFFSET], offsets)
    cuts = np.append(table[field.POSITION], len(made))[following].tolist()
    together, before = bytearray(), 0
    for cut, stretch in zip(cuts, stretches, strict=True):
        together += made[before:cut]
        together += stretch
        before = cut
    together += made[before:]
    return memoryview(together)


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
    """Cut a run where it changes between what stays apart as it is and the rest, and where it gets
    long.
    """
    table = read_batch_headers(as_bytes(view))
    native = _apart(table, target)
    first = 0
    for batch in range(1, len(native) + 1):
        start = int(table[field.POSITION, first])
        alike = batch < len(native) and native[batch] == native[first]
        if alike and (native[first] or table[field.BODY_END, batch] - start <= _PIECE_BYTES):
            continue
        yield view[start : int(table[field.BODY_END, batch - 1])], bool(native[first])
        first = batch


def _apart(table: Numbers, target: Encoding) -> Mask:
    """Return which batches stay as they are, and are not copied."""
    own: Mask = table[field.MAGIC] == target
    if target == Magic.PULSAR or not len(own):
        # What is made for Pulsar ends with a gap, which nothing may stand in.
        return own & ~has_marked(table)
    firsts, lasts = _stretches(own)
    sizes = table[field.BODY_END, lasts] - table[field.POSITION, firsts]
    return np.repeat(own[firsts] & (sizes >= _APART_BYTES), lasts - firsts + 1)


def _stretches(own: Mask) -> tuple[Numbers, Numbers]:
    """Return the first and the last of each stretch of batches that are alike."""
    edges = np.flatnonzero(np.diff(own))
    return np.append(0, edges + 1), np.append(edges, len(own) - 1)
