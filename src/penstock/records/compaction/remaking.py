"""Batches that lose some of their records, or get a delete horizon, made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    PREFIX_SIZE,
    Magic,
    read_header,
)
from penstock.records import field
from penstock.records.columns import as_bytes
from penstock.records.compaction.choosing import CHANGES
from penstock.records.compaction.iggy import iggy_bodies
from penstock.records.compaction.kafka import kafka_bodies
from penstock.records.decoding import decode
from penstock.records.kafka.compression import compress_kafka
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    NumbersIn,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, store_big
from penstock.records.made import (
    COUNT_AT,
    LENGTH_AT,
    MADE_FIELDS,
    MAX_TIMESTAMP_AT,
    Made,
    joined,
    note,
    seal,
    stored_numbers,
)
from penstock.records.pulsar.parts import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.records.columns import Bytes, Columns, Numbers
    from penstock.records.compaction.choosing import Choice
    from penstock.session import Buffer

_ATTRIBUTES_AT: Final = 21
_ATTRIBUTES_LOW_AT: Final = 22


def remade(columns: Columns, choice: Choice) -> Made:
    """Return what is left of the batches that change."""
    batches = columns.batches
    changed = np.flatnonzero(choice.fates == CHANGES)
    horizons = np.where(choice.get_horizon, choice.horizon, -1)
    parts: list[Made] = []
    for magic in Magic:
        chosen = changed[batches[field.MAGIC, changed] == magic]
        if magic is Magic.PULSAR:
            is_cut = choice.counts[chosen] != batches[field.RECORDS, chosen]
            if is_cut.any():
                cut = parts_of(columns, chosen[is_cut], choice.kept, horizons, marked=True)
                parts.append(cut)
            chosen = chosen[~is_cut]
        if len(chosen):
            parts.append(_remade(columns, choice, chosen, horizons, _BODIES[magic]))
    return joined(parts)


def _remade(
    columns: Columns, choice: Choice, chosen: Numbers, horizons: Numbers, bodies_of: _Bodies
) -> Made:
    """Return what is left of batches that stay one each."""
    bodies = bodies_of(columns, choice, chosen)
    room = HEADER_SIZE * len(chosen) + int((bodies.ends - bodies.starts).sum())
    out = np.empty(room, np.uint8)
    table = np.empty((MADE_FIELDS, len(chosen)), np.int64)
    tables = (columns.batches, columns.records, choice.kept, chosen, horizons)
    places = np.stack([bodies.starts, bodies.ends])
    write_batches(columns.data, *tables, bodies.data, places, out, table)
    return Made(out, table)


class _Stored(NamedTuple):
    """The bodies of batches, as they are to be stored."""

    data: Bytes
    starts: Numbers
    ends: Numbers


_Bodies: TypeAlias = "Callable[[Columns, Choice, Numbers], _Stored]"


def _bodies_of_kafka(columns: Columns, choice: Choice, chosen: Numbers) -> _Stored:
    batches = columns.batches
    stored_times = batches[field.BASE_TIMESTAMP, chosen]
    times = np.where(choice.get_horizon[chosen], choice.horizon, stored_times)
    out, ends = kafka_bodies(columns, chosen, choice.kept, times)
    bodies = _Stored(out, np.append(0, ends[:-1]), ends.copy())
    attributes = batches[field.ATTRIBUTES, chosen]
    parts, size = [out], len(out)
    for index in np.flatnonzero(attributes & (ATTRIBUTE_CONTROL | ATTRIBUTE_COMPRESSION)).tolist():
        if attributes[index] & ATTRIBUTE_CONTROL:
            position = int(batches[field.POSITION, chosen[index]])
            body = _marker_body(columns.data.data, position, int(times[index]))
        else:
            body = out[bodies.starts[index] : ends[index]].data
            body = compress_kafka(int(attributes[index]) & ATTRIBUTE_COMPRESSION, body)
        parts.append(as_bytes(body))
        bodies.starts[index], bodies.ends[index] = size, size + len(parts[-1])
        size += len(parts[-1])
    return bodies._replace(data=np.concatenate(parts)) if len(parts) > 1 else bodies


def _marker_body(stored: memoryview, position: int, base_timestamp: int) -> Buffer:
    """Return the record of a control batch with its time counted from another base timestamp."""
    batch = bytearray(stored[position : position + read_header(stored, position).size])
    batch[_ATTRIBUTES_LOW_AT] &= ~ATTRIBUTE_CONTROL  # Only so are its records looked at.
    columns = decode(batch)
    all_of_it = np.ones(len(columns), np.bool_)
    times = np.array([base_timestamp], np.int64)
    out, ends = kafka_bodies(columns, np.zeros(1, np.int64), all_of_it, times)
    return out[: ends[0]].data


def _bodies_of_pulsar(columns: Columns, choice: Choice, chosen: Numbers) -> _Stored:
    """Return the entries as they are: they lose nothing."""
    del choice
    positions = columns.batches[field.POSITION, chosen]
    sizes = stored_numbers(columns, LENGTH_AT)[chosen] + PREFIX_SIZE
    return _Stored(columns.data, positions + HEADER_SIZE, positions + sizes)


def _bodies_of_iggy(columns: Columns, choice: Choice, chosen: Numbers) -> _Stored:
    out, ends = iggy_bodies(columns, chosen, choice.kept)
    return _Stored(out, np.append(0, ends[:-1]), ends)


_BODIES: Final[dict[Magic, _Bodies]] = {
    Magic.KAFKA: _bodies_of_kafka,
    Magic.PULSAR: _bodies_of_pulsar,
    Magic.IGGY: _bodies_of_iggy,
}


@helper
def _latest(batches: TableIn, records: TableIn, kept: MaskIn, batch: int) -> tuple[int, int]:
    """Return the highest timestamp of a batch in ms for the records that are kept, and how many
    these are.
    """
    latest = latest_kept = int64(-1)
    count = int64(0)
    first = batches[field.FIRST_RECORD, batch]
    for row in range(first, first + batches[field.RECORDS, batch]):
        time = records[field.TIMESTAMP, row]
        latest = max(latest, time)
        if kept[row]:
            latest_kept = max(latest_kept, time)
            count += 1
    if latest_kept == latest or batches[field.ATTRIBUTES, batch] & ATTRIBUTE_LOG_APPEND_TIME:
        return batches[field.MAX_TIMESTAMP, batch], count
    return latest_kept // 1000, count


@kernel
def write_batches(
    data: BytesIn, batches: TableIn, records: TableIn, kept: MaskIn, chosen: NumbersIn,
    horizons: NumbersIn, bodies: BytesIn, places: TableIn, out: BytesOut, made: TableOut,
) -> None:  # fmt: skip
    """Write each chosen batch with its new body behind its old header, as far as that holds. The
    rows of `places` are where each body begins and ends.
    """
    position = int64(0)
    for index in range(len(chosen)):
        batch = chosen[index]
        copy_bytes(out, position, data, batches[field.POSITION, batch], HEADER_SIZE)
        time, count = _latest(batches, records, kept, batch)
        store_big(out, position + MAX_TIMESTAMP_AT, 8, time)
        if batches[field.MAGIC, batch] != Magic.PULSAR and batches[field.RECORDS, batch] > 0:
            store_big(out, position + COUNT_AT, 4, count)
        if horizons[batch] >= 0:
            attributes = batches[field.ATTRIBUTES, batch] | ATTRIBUTE_DELETE_HORIZON
            at = store_big(out, position + _ATTRIBUTES_AT, 2, attributes)
            store_big(out, at + 4, 8, horizons[batch])
        size = places[1, index] - places[0, index]
        copy_bytes(out, position + HEADER_SIZE, bodies, places[0, index], size)
        end = position + HEADER_SIZE + size
        seal(out, position, end)
        first = batches[field.BASE_OFFSET, batch]
        last = first + batches[field.LAST_DELTA, batch]
        note(made, index, batch, position, end, first, last, time)
        position = end
