"""Columns of bytes: each field is what it was, up to the last byte of its buffer, no further."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.records.arrow import gather, gather_spans
from penstock.records.kernels.fields import SIZE_BITS, SPARE, copy_fields
from penstock.records.kernels.text import mark_text

GUARD = 0xA5


@st.composite
def fields(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, int]]]:
    """A buffer, and spans of it in any order; many are short and at its very end."""
    data = draw(st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
    sizes = st.integers(-1, len(data)) | st.integers(-1, min(9, len(data)))
    at_end = draw(st.lists(sizes, max_size=4))
    spans = [(len(data) - max(size, 0), size) for size in at_end]
    for size in draw(st.lists(sizes, max_size=20)):
        start = draw(st.integers(0, len(data) - max(size, 0)))
        spans.append((start, size))
    return data, draw(st.permutations(spans))


def is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(fields())
def test_columns_have_the_bytes_of_their_spans(drawn: tuple[bytes, list[tuple[int, int]]]) -> None:
    data, spans = drawn
    buffer = np.frombuffer(data, np.uint8)
    starts = np.array([start for start, _ in spans], np.int64)
    sizes = np.array([size for _, size in spans], np.int64)
    expected = [None if size < 0 else data[start : start + size] for start, size in spans]
    assert gather(buffer, starts, sizes).to_pylist() == expected
    packed = (starts << SIZE_BITS) + np.maximum(sizes, 0)
    assert gather_spans(buffer, packed, sizes >= 0, sizes < 0).to_pylist() == expected
    marks = np.zeros(len(spans), np.bool_)
    mark_text(buffer, starts, sizes, marks)
    assert marks.tolist() == [is_text(content or b"") for content in expected]


@given(fields())
def test_nothing_is_written_beyond_the_spare_bytes(
    drawn: tuple[bytes, list[tuple[int, int]]],
) -> None:
    data, spans = drawn
    starts = np.array([start for start, _ in spans], np.int64)
    sizes = np.array([size for _, size in spans], np.int64)
    total = int(np.maximum(sizes, 0).sum())
    room = np.full(total + SPARE + 16, GUARD, np.uint8)
    assert copy_fields(np.frombuffer(data, np.uint8), starts, sizes, room[: total + SPARE]) == total
    assert (room[total + SPARE :] == GUARD).all()
