"""Where rows are held against expectations as they are written. Runs on the executors.

Spark says of each row which expectations it meets; here each row goes into the table, into the
quarantine table, nowhere, or ends the batch. One pass over the rows, so nothing is kept or computed
twice, and the counts are of the attempt that counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from penstock.pipeline.jobs.config import Expectation, Otherwise
from penstock.pipeline.jobs.steps import MET
from penstock.pipeline.tables.staging import ROW_GROUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.pipeline.tables.staging import Piece

TABLE: Final = "table"
QUARANTINE: Final = "quarantine"
COUNTS: Final = "counts"

UNMET: Final = "_expectation"
"""The column of a quarantine table: the first expectation that a row does not meet."""

MANIFEST: Final = (
    "into string, staged string, rows bigint, size bigint, parts array<string>, footer binary, "
    "unmet array<bigint>"
)
"""What a task says: its files, and at last how many rows met each expectation not."""

_ARROW: Final = pa.schema(
    [
        ("into", pa.string()),
        ("staged", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("parts", pa.list_(pa.string())),
        ("footer", pa.binary()),
        ("unmet", pa.list_(pa.int64())),
    ]
)


class UnmetError(Exception):
    """A row does not meet an expectation that ends the run."""


class RowWriter(Protocol):
    """What a task's rows are written with; pickled to the executors."""

    def write(self, batches: Iterable[pa.RecordBatch], query: str, batch: int) -> Iterator[Piece]:
        """Write rows; yield each piece of what was written when it is whole."""


@dataclass(frozen=True)
class Gate:
    """Writes one batch's rows; pickled to the executors."""

    query: str
    batch: int
    target: RowWriter
    quarantine: RowWriter | None
    expectations: tuple[Expectation, ...]

    def stage(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write a task's rows; yield its manifest. Raises UnmetError."""
        sorting = _Sorting(self)
        for piece in self.target.write(sorting.staying(batches), self.query, self.batch):
            yield _line(TABLE, piece)
        for piece in sorting.quarantined():
            yield _line(QUARANTINE, piece)
        yield pa.RecordBatch.from_pylist(
            [{"into": COUNTS, "rows": 0, "size": 0, "unmet": sorting.unmet.tolist()}], _ARROW
        )


class _Sorting:
    """Says of each row where it goes."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._pieces: list[Piece] = []
        self.unmet = np.zeros(len(gate.expectations), np.int64)

    def staying(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that stay, in their order."""
        for batch in batches:
            if not self._gate.expectations:
                yield batch
                continue
            met = _matrix(batch, len(self._gate.expectations))
            rows = batch.drop_columns([MET])
            self.unmet += (~met).sum(0)
            stays = self._sorted(rows, met)
            if stays.all():
                yield rows
            elif stays.any():
                yield rows.filter(pa.array(stays))

    def quarantined(self) -> list[Piece]:
        """Return the files of what was quarantined, all written."""
        self._write()
        return self._pieces

    def _sorted(self, rows: pa.RecordBatch, met: np.ndarray) -> np.ndarray:
        stays = np.ones(len(rows), bool)
        for index, each in enumerate(self._gate.expectations):
            unmet = stays & ~met[:, index]
            if each.otherwise is Otherwise.KEEP or not unmet.any():
                continue
            if each.otherwise is Otherwise.FAIL:
                raise UnmetError(_unmet(each, rows.slice(int(unmet.argmax()), 1)))
            if each.otherwise is Otherwise.QUARANTINE:
                self._hold(rows.filter(pa.array(unmet)), each)
            stays &= ~unmet
        return stays

    def _hold(self, rows: pa.RecordBatch, unmet: Expectation) -> None:
        self._held.append(rows.append_column(UNMET, pa.repeat(unmet.name, len(rows))))
        self._held_bytes += rows.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if self._held:
            assert self._gate.quarantine is not None, "somewhere to go is planned for these rows"
            gate = self._gate
            self._pieces.extend(self._gate.quarantine.write(self._held, gate.query, gate.batch))
        self._held, self._held_bytes = [], 0


def _matrix(batch: pa.RecordBatch, expectations: int) -> np.ndarray:
    """Return whether each row (axis 0) meets each expectation (axis 1)."""
    flat: np.ndarray = batch.column(MET).flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(batch), expectations)


def _unmet(expectation: Expectation, row: pa.RecordBatch) -> str:
    (values,) = row.to_pylist()
    told = ", ".join(f"{name}={values[name]!r}" for name in list(values)[:8])
    return f"expectation {expectation.name!r} ({expectation.that}) is not met: {told[:500]}"


def _line(into: str, piece: Piece) -> pa.RecordBatch:
    entry = {"into": into, "staged": piece.staged, "rows": piece.rows, "size": piece.size}
    rest = {"parts": list(piece.values), "footer": piece.footer}
    return pa.RecordBatch.from_pylist([entry | rest], _ARROW)
