"""Rows of an export as batches of a log, at the offsets that they had. Runs on the executors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.parquet as pq

from penstock.clients.kafka.client import LATEST, KafkaClient, KafkaError
from penstock.kafka.wire import ErrorCode
from penstock.log.header import read_header
from penstock.pipeline.logs.manifest import ExportError
from penstock.pipeline.logs.repacking import LONGEST_SPAN, packed
from penstock.pipeline.source.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.pipeline.logs.manifest import ExportedFile
    from penstock.pipeline.source.offsets import TopicPartition

_PIECE_BYTES: Final = 8 << 20
"""Arrow bytes of rows that are encoded at once."""

_SETTLING_SECONDS: Final = 60
"""How long a request of a run that was killed may still be at work."""


def restore(
    servers: str,
    folder: Path,
    files: Sequence[ExportedFile],
    target: TopicPartition,
    end: int,
    codec: int,
) -> int:
    """Append to a partition what it lacks of some files, up to the offset `end`; return how many
    records that were. Raises ExportError, OSError.
    """
    with KafkaClient(servers) as client:
        log = RestoredLog(client, target)
        restored = 0
        for file in files:
            if file.end <= log.end:
                continue
            for rows in rows_from(folder / file.name, log.end):
                for batch in packed(rows, codec):
                    log.append(batch)
                restored += rows.num_rows
        log.extend(end)
    return restored


class RestoredLog:
    """The end of a partition to which batches are appended at offsets of their own."""

    def __init__(self, client: KafkaClient, target: TopicPartition) -> None:
        self._client = client
        self._target = target
        self._patience = Patience(answered=False)
        self.end = self._patience.ask(self._ask_end)

    def append(self, batch: memoryview) -> None:
        """Append one batch, behind a gap where it begins further on. Raises ExportError."""
        header = read_header(batch)
        self.extend(max(self.end, header.base_offset - LONGEST_SPAN))
        self._append(header.base_offset, header.next_offset, batch)

    def extend(self, end: int) -> None:
        """Move the end, so that nothing lies in between. Raises ExportError."""
        while self.end < end:
            following = min(end, self.end + LONGEST_SPAN)
            self._append(following, following, None)

    def _append(self, offset: int, following: int, batch: memoryview | None) -> None:
        deadline = time.monotonic() + _SETTLING_SECONDS
        while True:
            try:
                self._patience.ask(
                    lambda: self._client.append_at(*self._target, self.end, offset, batch)
                )
            except KafkaError as error:
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise ExportError(f"{self._target} can't be written to: {error}") from error
            else:
                break
            # It was written, and its answer lost; or a request of a run before is being written.
            end = self._patience.ask(self._ask_end)
            if end == following:
                break
            if end > self.end or time.monotonic() > deadline:
                raise ExportError(
                    f"{self._target} ends at {end} instead of {self.end}: somebody else writes to "
                    "it. Keep producers away until it is imported"
                )
            time.sleep(0.1)
        self.end = following

    def _ask_end(self) -> int:
        place: tuple[str, int] = self._target
        return self._client.list_offsets({place: LATEST})[place] or 0


def rows_from(path: Path, start: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with offsets from `start` on, some megabytes at a time."""
    with opened(path) as file:
        for rows in in_pieces(file):
            first = int(np.searchsorted(rows.column("offset").to_numpy(), start))
            if first < rows.num_rows:
                yield rows.slice(first)


def rows_below(path: Path, end: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with offsets below `end`, a row group at a time, the last first."""
    with opened(path) as file:
        for index in reversed(range(file.num_row_groups)):
            for rows in reversed(file.read_row_group(index).to_batches()):
                count = int(np.searchsorted(rows.column("offset").to_numpy(), end))
                if count:
                    yield rows.slice(0, count)


def opened(path: Path) -> pq.ParquetFile:
    """Open a file whose pages are verified as they are read."""
    return pq.ParquetFile(path, page_checksum_verification=True)


def in_pieces(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Yield all rows, some megabytes at a time."""
    groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
    size = sum(each.total_byte_size for each in groups)
    piece = max(1, _PIECE_BYTES * file.metadata.num_rows // max(size, 1))
    yield from file.iter_batches(batch_size=piece)
