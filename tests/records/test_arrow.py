from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.records import field
from penstock.records.arrow import to_arrow
from penstock.records.columns import Columns, as_bytes

Span = tuple[int, int]

COLUMNS = ("key", "value", "offset", "timestamp", "timestampType")
DATA = bytes(range(65, 91)) * 4
spans = st.tuples(st.integers(0, 80), st.integers(-1, 20))


def columns(
    keys: list[Span], values: list[Span], headers: list[list[tuple[Span, Span]]] | None = None
) -> Columns:
    """Records whose fields lie anywhere in `DATA`: apart, out of order, over one another."""
    records = np.zeros((field.RECORD_FIELDS, len(keys)), np.int64)
    records[field.OFFSET] = np.arange(len(keys)) + 7
    records[field.TIMESTAMP] = 1_500_000_000_123_456
    records[[field.KEY_START, field.KEY_SIZE]] = np.array(keys, np.int64).reshape(-1, 2).T
    records[[field.VALUE_START, field.VALUE_SIZE]] = np.array(values, np.int64).reshape(-1, 2).T
    batches = np.zeros((field.BATCH_FIELDS, 1), np.int64)
    batches[field.RECORDS] = len(keys)
    headers = headers or [[] for _ in keys]
    table = np.zeros((field.HEADER_FIELDS, sum(map(len, headers))), np.int64)
    for column, (name, content) in enumerate(pair for pairs in headers for pair in pairs):
        table[[field.NAME_START, field.NAME_SIZE], column] = name
        table[[field.CONTENT_START, field.CONTENT_SIZE], column] = content
    starts = np.cumsum([0, *map(len, headers)])
    return Columns(as_bytes(DATA), as_bytes(DATA), records, table, starts, batches)


def at(span: Span) -> bytes | None:
    start, size = span
    return None if size < 0 else DATA[start : start + size]


@given(st.lists(st.tuples(spans, spans), max_size=12))
def test_fields_are_gathered_wherever_they_lie(fields: list[tuple[Span, Span]]) -> None:
    keys, values = [key for key, _ in fields], [value for _, value in fields]
    arrays = to_arrow(columns(keys, values), COLUMNS)
    assert arrays["key"].to_pylist() == [at(key) for key in keys]
    assert arrays["value"].to_pylist() == [at(value) for value in values]
    assert arrays["offset"].to_pylist() == [7 + index for index in range(len(fields))]
    for array in arrays.values():
        array.validate(full=True)


named = st.tuples(st.tuples(st.integers(0, 80), st.integers(0, 20)), spans)


@given(st.lists(st.lists(named, max_size=3), min_size=1, max_size=6))
def test_headers_keep_their_order_and_their_records(headers: list[list[tuple[Span, Span]]]) -> None:
    nothing: list[Span] = [(0, -1)] * len(headers)
    arrays = to_arrow(columns(nothing, nothing, headers), {*COLUMNS, "headers"})
    found = [
        [(h["key"].encode(), h["value"]) for h in row] for row in arrays["headers"].to_pylist()
    ]
    assert found == [[(at(name), at(content)) for name, content in row] for row in headers]


def test_the_arrays_outlive_the_buffer() -> None:
    data = bytearray(b"keyvalue")
    made = columns([(0, 3)], [(3, 5)])
    made.data = as_bytes(data)
    arrays = to_arrow(made, COLUMNS)
    data[:] = bytes(8)
    assert (arrays["key"].to_pylist(), arrays["value"].to_pylist()) == ([b"key"], [b"value"])


def test_times_keep_their_microseconds_and_unknown_ones_are_null() -> None:
    made = columns([(0, 1)] * 2, [(0, 1)] * 2)
    made.records[field.TIMESTAMP, 1] = -1
    arrays = to_arrow(made, COLUMNS)
    assert arrays["timestamp"].to_pylist() == [
        datetime(2017, 7, 14, 2, 40, 0, 123_456, tzinfo=UTC),
        None,
    ]
    assert arrays["timestampType"].to_pylist() == [0, 0]


def test_nothing_is_made_that_is_not_asked_for() -> None:
    made = columns([(0, 1)], [(0, 1)])
    assert list(to_arrow(made, {"offset", "partition"})) == ["offset"]


def test_a_name_that_is_no_text_is_made_one() -> None:
    made = columns([(0, 1)], [(0, 1)], [[((0, 2), (0, 1))]])
    made.header_data = as_bytes(b"\xffA")
    ((header,),) = to_arrow(made, {"headers"})["headers"].to_pylist()
    assert header["key"] == "\N{REPLACEMENT CHARACTER}A"
