"""Stored batches as rows in Arrow: what a Kafka client would see, in the columns asked for.

Times are in microseconds where the producer's were, and what only another protocol can say stands
in headers (docs/interop.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock import records
from penstock.log.header import ATTRIBUTE_CONTROL, ATTRIBUTE_LOG_APPEND_TIME, Magic, walk
from penstock.pipeline.source.corruption import Damage
from penstock.pipeline.source.options import HEADERS
from penstock.pipeline.source.runs import may_hold_chunks
from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.values.in_place import RowsInPlace
from penstock.pipeline.values.options import SCHEMA_VERSION
from penstock.records import MalformedBatchError, field
from penstock.records.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.pipeline.source.offsets import OffsetRange
    from penstock.records.columns import Columns, Numbers
    from penstock.records.pulsar.schema_versions import SchemaVersions
    from penstock.session import Buffer

BATCH_BYTES: Final = 8 << 20
"""Arrow bytes above which what came of one run is cut, for compressed batches grow."""

_IN_HEADERS: Final = frozenset({"topic", "partition", "offset", "timestampType"})
"""Columns that the headers of most batches say."""
_COUNTED: Final = (Magic.KAFKA, Magic.IGGY)
"""Encodings of which a batch holds as many rows as its header says."""
_COUNTED_TOGETHER: Final = 250_000
_SPANS: Final = {
    "key": slice(field.KEY_START, field.KEY_SIZE + 1),
    "value": slice(field.VALUE_START, field.VALUE_SIZE + 1),
}
"""Where the table of records says where they are: two rows, one behind the other."""


class Rows:
    """Makes rows of one range of offsets; `met` hears of batches that nobody can read."""

    def __init__(
        self,
        span: OffsetRange,
        columns: Sequence[str],
        earlier: Callable[[int, int], Iterable[Buffer]],
        met: Callable[[Damage], None],
        in_place: Sequence[str] = (),
    ) -> None:
        self._span = span
        self._schema = arrow_schema([name for name in columns if name not in in_place])
        self._in_place = in_place
        self._earlier = earlier
        self._met = met
        self._counts = _IN_HEADERS.issuperset(columns) and not in_place
        self._waiting: list[dict[str, Numbers]] = []
        self._topics, self._partitions = _repeated(span, 0)

    def of(self, runs: Iterable[Buffer]) -> Iterator[RowsInPlace]:
        """Yield rows of runs of whole batches, in the order of the log.

        Of them the columns that were named, keys or values, are left in place.
        """
        for run in runs:
            if self._counts and self._count(memoryview(run)):
                if self._rows_waiting() >= _COUNTED_TOGETHER:
                    yield from self._counted()
                continue
            yield from self._counted()
            for columns, versions in self._readable(memoryview(run)):
                yield from self._decoded(columns, versions).cut(BATCH_BYTES)
        yield from self._counted()

    # From bodies

    def _readable(self, run: memoryview) -> Iterator[tuple[Columns, SchemaVersions | None]]:
        """Yield what can be read of a run, and have `met` hear of the rest."""
        done = -1
        try:
            versions = self._versions(run)
            for columns in self._columns(run):
                yield columns, versions
                done = _end_of(columns, done)
        except MalformedBatchError as error:
            parts = _around(run, done, error.base_offset)
            if parts:
                for part in parts:
                    yield from self._readable(part)
            else:
                self._met(_unreadable(self._span, run, done, error))

    def _columns(self, run: memoryview) -> Iterator[Columns]:
        joined = records.join_messages(run, self._earlier) if may_hold_chunks(run) else [run]
        for whole in joined:
            if HEADERS not in self._schema.names:
                yield from records.decode_run(whole, headers=False)
                continue
            for batches in records.convert(whole, Magic.KAFKA):
                yield from records.decode_run(batches)

    def _versions(self, run: memoryview) -> SchemaVersions | None:
        if SCHEMA_VERSION not in self._schema.names:
            return None
        from penstock.records.pulsar.schema_versions import schema_versions  # noqa: PLC0415  # see records

        return schema_versions(run)

    def _decoded(self, columns: Columns, versions: SchemaVersions | None) -> RowsInPlace:
        """Return the rows that are in the range."""
        first, last = np.searchsorted(columns.offsets, (self._span.start, self._span.end))
        count = int(last - first)
        arrays = to_arrow(columns, self._schema.names)
        if HEADERS in arrays:
            arrays[HEADERS] = _null_where_none(arrays[HEADERS])
        if versions is not None:
            arrays[SCHEMA_VERSION] = pa.array(versions.of(columns.offsets))
        rows = self._batch({name: each.slice(first, count) for name, each in arrays.items()}, count)
        spans = {
            name: np.ascontiguousarray(columns.records[_SPANS[name], first:last])
            for name in self._in_place
        }
        return RowsInPlace(rows, columns.data, spans)

    def _batch(self, arrays: dict[str, pa.Array], count: int) -> pa.RecordBatch:
        if count > len(self._topics):
            self._topics, self._partitions = _repeated(self._span, count)
        if "topic" in self._schema.names:
            arrays["topic"] = self._topics.slice(0, count)
        if "partition" in self._schema.names:
            arrays["partition"] = self._partitions.slice(0, count)
        ordered = [arrays[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(ordered, schema=self._schema)

    # From headers

    def _count(self, run: memoryview) -> bool:
        """Take the rows of a run from its headers; False where those do not say all of them."""
        counted = _from_headers(run)
        if counted is None:
            return False
        first, last = np.searchsorted(counted["offset"], (self._span.start, self._span.end))
        self._waiting.append({name: each[first:last] for name, each in counted.items()})
        return True

    def _rows_waiting(self) -> int:
        return sum(len(each["offset"]) for each in self._waiting)

    def _counted(self) -> Iterator[RowsInPlace]:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        arrays = {
            name: pa.array(np.concatenate([each[name] for each in waiting]))
            for name in ("offset", "timestampType")
            if name in self._schema.names
        }
        count = sum(len(each["offset"]) for each in waiting)
        if count:
            yield RowsInPlace(self._batch(arrays, count), np.empty(0, np.uint8), {})


def _repeated(span: OffsetRange, count: int) -> tuple[pa.Array, pa.Array]:
    """Return the topic and the partition of so many rows."""
    topic, partition = span.source
    return pa.repeat(pa.scalar(topic), count), pa.repeat(pa.scalar(partition, pa.int32()), count)


def _from_headers(run: memoryview) -> dict[str, Numbers] | None:
    """Return offsets and types of time of all rows; None where some batch has to be looked into."""
    from penstock.records.batch_headers import read_batch_headers  # noqa: PLC0415  # see records

    table = read_batch_headers(np.frombuffer(run, np.uint8))
    spans = table[field.LAST_DELTA] + 1
    counts = np.where(table[field.ATTRIBUTES] & ATTRIBUTE_CONTROL, 0, spans)
    is_counted = np.isin(table[field.MAGIC], _COUNTED) & (table[field.COUNT] == spans)
    if not (is_counted | (counts == 0)).all():
        return None
    firsts = table[field.BASE_OFFSET] - np.concatenate([[0], np.cumsum(counts)[:-1]])
    appended = (table[field.ATTRIBUTES] & ATTRIBUTE_LOG_APPEND_TIME) != 0
    return {
        "offset": np.repeat(firsts, counts) + np.arange(counts.sum()),
        "timestampType": np.repeat(appended.astype(np.int32), counts),
    }


def _null_where_none(headers: pa.ListArray) -> pa.ListArray:
    """Return headers as Spark's Kafka source says them: a record without any has null."""
    starts = headers.offsets.to_numpy()
    none = pa.array(starts[1:] == starts[:-1])
    return pa.ListArray.from_arrays(headers.offsets, headers.values, type=headers.type, mask=none)


def _end_of(columns: Columns, before: int) -> int:
    batches = columns.batches
    ends = batches[field.BASE_OFFSET] + batches[field.LAST_DELTA] + 1
    return max(before, int(ends.max(initial=before)))


def _around(run: memoryview, done: int, bad_offset: int) -> list[memoryview]:
    """Cut what is left of a run into what precedes a bad batch, that batch, and what follows it.

    Into halves where nobody knows which one it is; into nothing where one batch is left.
    """
    starts = [
        (position, header.base_offset)
        for position, header in walk(run)
        if header.next_offset > done
    ]
    if len(starts) <= 1:
        return []
    bad = [index for index, (_, offset) in enumerate(starts) if offset == bad_offset]
    edges = {0, bad[0], bad[0] + 1} if bad else {0, len(starts) // 2}
    positions = [starts[index][0] for index in sorted(edges) if index < len(starts)]
    return [run[start:end] for start, end in zip(positions, [*positions[1:], None], strict=True)]


def _unreadable(
    span: OffsetRange, run: memoryview, done: int, error: MalformedBatchError
) -> Damage:
    """Describe the one batch that is left of a run."""
    batches = list(walk(run))
    position, header = next((each for each in batches if each[1].next_offset > done), batches[-1])
    data = bytes(run[position : position + header.size])
    return Damage(span.source, header.base_offset, header.next_offset, str(error), data=data)
