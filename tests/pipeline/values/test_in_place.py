"""Rows whose values lie where they were stored: cut into pieces, and gathered where they are asked
for.
"""

from __future__ import annotations

import pyarrow as pa

from located import located
from penstock.pipeline.values.in_place import RowsInPlace

VALUES = [b"one", None, b"", b"four" * 100, b"five"]


def rows_in_place() -> RowsInPlace:
    data, spans = located(VALUES)
    offsets = pa.record_batch({"offset": pa.array(range(len(VALUES)), pa.int64())})
    return RowsInPlace(offsets, data, {"value": spans})


def all_of(pieces: list[RowsInPlace]) -> list[tuple[int, bytes | None]]:
    rows = [
        each for piece in pieces for each in piece.gathered(range(piece.rows.num_rows)).to_pylist()
    ]
    return [(row["offset"], row["value"]) for row in rows]


def test_pieces_are_all_rows_in_order() -> None:
    whole = rows_in_place()
    for size, count in ((1 << 20, 1), (200, 3), (1, len(VALUES))):
        pieces = list(whole.cut(size))
        assert len(pieces) == count
        assert all_of(pieces) == list(enumerate(VALUES))


def test_no_rows_are_no_piece() -> None:
    whole = rows_in_place()
    (piece,) = whole.cut(1 << 20)
    empty = RowsInPlace(piece.rows.slice(0, 0), piece.data, {"value": piece.spans["value"][:, :0]})
    assert list(empty.cut(1)) == []


def test_some_rows_are_gathered_in_any_order() -> None:
    assert rows_in_place().gathered([4, 1]).to_pylist() == [
        {"offset": 4, "value": b"five"},
        {"offset": 1, "value": None},
    ]
