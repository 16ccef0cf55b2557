"""What producers of Iggy's older dialects send, made into a batch of today's layout.

Sources: iggy 0.0.60 (2023) for the early form of messages, apache-iggy 0.5 to 0.8 for the others.
"""

from __future__ import annotations

import os
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock import wall_clock
from penstock.records.columns import as_bytes
from penstock.records.iggy import layout, older_layout
from penstock.records.iggy.batch import (
    INDEX,
    LAYOUT,
    RESERVED,
    SOUND,
    IggyBatch,
    IggyBatchError,
    IggyFault,
    entries_fault,
    size_fault,
)
from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersOut, int64, uint64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_half, load_word, store_little
from penstock.records.kernels.xxh3 import xxh3_64

if TYPE_CHECKING:
    from penstock.session import Buffer

_EARLY: Final = older_layout.EARLY
_EARLIER: Final = -1
"""What `restate` returns where a message is earlier than it was called with."""
_FROM_FIRST: Final = -1
"""The earliest time of a batch, where it is taken to be that of the first message."""
_TIME_END: Final = 1 << 62
"""From here on a number of microseconds is no time."""
_LATEST_DELTA: Final = (1 << 32) - 1
"""Microseconds behind a batch's earliest message: later ones are said to be as late as this."""


class Form(IntEnum):
    """How messages lie one behind the other."""

    EARLY = older_layout.EARLY
    WITHOUT_RESERVE = older_layout.WITHOUT_RESERVE
    WITH_RESERVE = older_layout.WITH_RESERVE


class Restated(NamedTuple):
    """A batch of today's layout; its header is still to be stamped."""

    body: memoryview
    facts: IggyBatch


def from_older(messages: Buffer, form: Form, count: int) -> Restated:
    """Make a batch of one request's messages, and of the index in front of them.

    `count` is how many the request says; an early one does not. A message without an id gets a
    random one, a message without a time that of now. Raises IggyBatchError.
    """
    data = as_bytes(messages)
    out = np.empty(layout.BATCH_HEADER_SIZE + _room(form, len(data)), np.uint8)
    facts = np.zeros(4, np.int64)
    now = wall_clock.now_us()
    seed = int.from_bytes(os.urandom(8), "little") >> 1
    fault = restate(data, form, count, now, _FROM_FIRST, seed, out, facts)
    if fault == _EARLIER:
        fault = restate(data, form, count, now, int(facts[2]), seed, out, facts)
    if fault != SOUND:
        raise IggyBatchError(IggyFault(fault))
    size, *sound = facts.tolist()
    return Restated(out.data[:size], IggyBatch(*sound))


def _room(form: Form, size: int) -> int:
    """Return how long the frames can get that are made of `size` bytes.

    An early message of at least 25 bytes gets 24 longer, a later one shorter. A user header of at
    least 11 gets one longer.
    """
    return 2 * size if form is Form.EARLY else size + size // 8


@helper
def _random_word(seed: int, place: int) -> int:
    """Return a number of a sequence (splitmix64)."""
    word = uint64(seed) + uint64(place) * uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return word ^ (word >> uint64(31))


@helper
def _write_id(
    out: BytesOut, position: int, data: BytesIn, start: int, seed: int, index: int
) -> None:
    """Write a message's id, or a random one (UUID version 4) where it has none."""
    low = load_word(data, start)
    high = load_word(data, start + 8)
    if low == uint64(0) and high == uint64(0):
        low = _random_word(seed, 2 * index + 1) & uint64(0x3FFFFFFFFFFFFFFF) | uint64(1 << 63)
        high = _random_word(seed, 2 * index + 2) & uint64(0xFFFFFFFFFFFF0FFF) | uint64(0x4000)
    store_little(out, position, 8, int64(low))
    store_little(out, position + 8, 8, int64(high))


@helper
def _write_entries(out: BytesOut, position: int, data: BytesIn, start: int, end: int) -> int:
    """Write user headers whose keys get a kind; returns their end, or minus a fault."""
    while start < end:
        fault = older_layout.entry_fault(data, start, end)
        if fault != SOUND:
            return -fault
        following = older_layout.entry_end(data, start)
        out[position] = older_layout.STRING
        copy_bytes(out, position + 1, data, start, following - start)
        position += 1 + following - start
        start = following
    return position


@helper
def _write_message(
    out: BytesOut, position: int, data: BytesIn, payload_at: int, payload: int,
    headers_at: int, headers: int, have_kinds: bool,
) -> int:  # fmt: skip
    """Write payload, user headers and their sizes; returns the end, or minus a fault."""
    body = position + layout.FRAME_SIZE
    copy_bytes(out, body, data, payload_at, payload)
    body += payload
    if have_kinds:
        fault = entries_fault(data, headers_at, headers_at + headers)
        if fault != SOUND:
            return -fault
        copy_bytes(out, body, data, headers_at, headers)
        end = body + headers
    else:
        end = _write_entries(out, body, data, headers_at, headers_at + headers)
        if end < 0:
            return end
    store_little(out, position + layout.FRAME_HEADERS_AT, 4, end - body)
    store_little(out, position + layout.FRAME_PAYLOAD_AT, 4, payload)
    store_little(out, position + layout.FRAME_RESERVED_AT, 8, 0)
    return end


@helper
def _early_sizes(data: BytesIn, position: int) -> tuple[int, int]:
    """Return the sizes of an early message's headers and payload, -1 where they are too long."""
    left = len(data) - position - older_layout.EARLY_SIZE
    if left < 0:
        return int64(-1), int64(-1)
    headers = load_half(data, position + 16)
    if headers > left:
        return int64(-1), int64(-1)
    payload = load_half(data, position + 20 + headers)
    if payload > left - headers:
        return int64(-1), int64(-1)
    return headers, payload


@helper
def _later_sizes(data: BytesIn, position: int, form: int) -> tuple[int, int]:
    left = len(data) - position - form
    if left < 0:
        return int64(-1), int64(-1)
    headers = load_half(data, position + older_layout.HEADERS_AT)
    payload = load_half(data, position + older_layout.PAYLOAD_AT)
    if headers + payload > left:
        return int64(-1), int64(-1)
    return headers, payload


@helper
def _later_fault(data: BytesIn, position: int, end: int, form: int, count: int, index: int) -> int:
    """Return what is wrong with a message's place in the index, or with its reserve."""
    if index >= count:
        return INDEX
    said = load_half(data, index * older_layout.INDEX_SIZE + 4)
    if said + count * older_layout.INDEX_SIZE != end:
        return INDEX
    if form == older_layout.WITH_RESERVE and load_word(data, position + older_layout.RESERVE_AT):
        return RESERVED
    return SOUND


@helper
def _restate_early(
    data: BytesIn, position: int, out: BytesOut, at: int, seed: int, index: int
) -> tuple[int, int]:
    """Write all of a frame but its time; returns its end, or minus a fault, and the message's."""
    headers, payload = _early_sizes(data, position)
    if headers < 0:
        return int64(-LAYOUT), position
    fault = size_fault(headers, payload)
    if fault != SOUND:
        return int64(-fault), position
    headers_at = position + 20
    payload_at = headers_at + headers + 4
    _write_id(out, at + layout.FRAME_ID_AT, data, position, seed, index)
    written = _write_message(out, at, data, payload_at, payload, headers_at, headers, False)
    return written, payload_at + payload


@helper
def _restate_later(
    data: BytesIn, position: int, form: int, count: int, out: BytesOut, at: int, seed: int,
    index: int,
) -> tuple[int, int]:  # fmt: skip
    headers, payload = _later_sizes(data, position, form)
    if headers < 0:
        return int64(-LAYOUT), position
    payload_at = position + form
    headers_at = payload_at + payload
    end = headers_at + headers
    fault = _later_fault(data, position, end, form, count, index)
    if fault == SOUND:
        fault = size_fault(headers, payload)
    if fault != SOUND:
        return int64(-fault), position
    _write_id(out, at + layout.FRAME_ID_AT, data, position + older_layout.ID_AT, seed, index)
    have_kinds = form == older_layout.WITH_RESERVE
    return _write_message(out, at, data, payload_at, payload, headers_at, headers, have_kinds), end


@helper
def _time_of(data: BytesIn, position: int, form: int, now: int) -> int:
    """Return the time that a producer gave to a message, or that of now where it gave none."""
    if form == _EARLY or len(data) - position < form:
        return now
    given = int64(load_word(data, position + older_layout.ORIGIN_AT))
    return given if 0 < given < _TIME_END else now


@helper
def _first_message(data: BytesIn, form: int, count: int) -> int:
    """Return where the first message begins, -1 where the index does not fit."""
    if form == _EARLY:
        return int64(0)
    if count < 1 or count > len(data) // older_layout.INDEX_SIZE:
        return int64(-1)
    return int64(count * older_layout.INDEX_SIZE)


@helper
def _write_header(out: BytesOut, size: int, origin: int, count: int) -> None:
    out[: layout.BATCH_HEADER_SIZE] = 0
    store_little(out, layout.ORIGIN_TIMESTAMP_AT, 8, origin)
    store_little(out, layout.LENGTH_AT, 8, size)
    store_little(out, layout.COUNT_AT, 4, count)


@kernel
def restate(
    data: BytesIn, form: int, count: int, now: int, origin: int, seed: int, out: BytesOut,
    facts: NumbersOut,
) -> int:  # fmt: skip
    """Write a batch and return SOUND, or what is wrong; fill in its size and an IggyBatch's fields.

    `origin` is the time of the earliest message. If there is an earlier one, _EARLIER is returned,
    with its time in place of the batch's first.
    """
    position = _first_message(data, form, count)
    at = int64(layout.BATCH_HEADER_SIZE)
    index = int64(0)
    first = earliest = latest = _time_of(data, max(position, 0), form, now)
    origin = origin if origin >= 0 else first
    while 0 <= position < len(data):
        if form == _EARLY:
            end, following = _restate_early(data, position, out, at, seed, index)
        else:
            end, following = _restate_later(data, position, form, count, out, at, seed, index)
        if end < 0:
            return -end
        store_little(out, at + layout.FRAME_OFFSET_AT, 4, index)
        given = _time_of(data, position, form, now)
        earliest = min(earliest, given)
        latest = max(latest, given)
        delta = min(max(given - origin, 0), _LATEST_DELTA)
        store_little(out, at + layout.FRAME_TIMESTAMP_AT, 4, delta)
        store_little(out, at, 8, int64(xxh3_64(out, at + 8, end - at - 8)))
        at = end
        position = following
        index += 1
    if index == 0 or (form != _EARLY and index != count):
        return int64(INDEX)
    facts[0] = at
    facts[1] = index
    facts[2] = min(first, origin + _LATEST_DELTA)
    facts[3] = min(latest, origin + _LATEST_DELTA)
    if earliest < origin:
        facts[2] = earliest
        return int64(_EARLIER)
    _write_header(out, at, origin, index)
    return int64(SOUND)
