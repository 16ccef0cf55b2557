"""Data folders for brokers in the test's own process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.log.layout import DATABASE_FILE
from penstock.metadata.store import MetadataStore


def with_tables(folder: Path) -> Path:
    """Give a new data folder the empty tables that a broker would make in it.

    To make them takes longer than most tests do. A folder with something in it stays as it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        (folder / DATABASE_FILE).write_bytes(_empty_tables())
    return folder


@cache
def _empty_tables() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / DATABASE_FILE
        MetadataStore.open(file).close_now()
        return file.read_bytes()
