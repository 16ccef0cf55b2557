"""Whether a file of an export is what it was: looked at before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.pipeline.logs.manifest import ExportError
from penstock.pipeline.logs.restoring import in_pieces, opened
from penstock.pipeline.source.schema import arrow_schema

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow.parquet as pq

    from penstock.pipeline.logs.manifest import ExportedFile


def check_file(folder: Path, file: ExportedFile, columns: tuple[str, ...]) -> None:
    """Look at a file's columns, each of its pages and the order of offsets. Raises ExportError."""
    try:
        with opened(folder / file.name) as found:
            _check_columns(found.schema_arrow, file, columns)
            _check_rows(found, file)
    except FileNotFoundError:
        raise ExportError(f"{file.name} is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise ExportError(f"{file.name} can't be read: {error}") from error


def _check_columns(found: pa.Schema, file: ExportedFile, columns: tuple[str, ...]) -> None:
    for each in arrow_schema(columns):
        if each.name not in found.names:
            raise ExportError(f"{file.name} has no column {each.name}")
        kind = found.field(each.name).type
        if not kind.equals(each.type):
            raise ExportError(f"column {each.name} of {file.name} is {kind}, not {each.type}")


def _check_rows(found: pq.ParquetFile, file: ExportedFile) -> None:
    before = file.start - 1
    for rows in in_pieces(found):
        offsets = rows.column("offset")
        if offsets.null_count:
            raise ExportError(f"{file.name} has a row without an offset")
        numbers = np.concatenate(([before], offsets.to_numpy()))
        if (np.diff(numbers) <= 0).any():
            row = int(np.argmax(np.diff(numbers) <= 0))
            raise ExportError(f"{file.name}: offset {numbers[row + 1]} follows {numbers[row]}")
        before = int(numbers[-1])
    if before >= file.end:
        raise ExportError(f"{file.name} holds offset {before}, which its name excludes")
