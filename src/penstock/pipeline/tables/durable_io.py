"""Iceberg's metadata on a local disk, so that a power cut takes none of it back.

The catalogue's own commit is durable, and must never name a file that is not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

from pyarrow import fs
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from penstock.pipeline.tables.storage import flush_folder


class DurableFileIO(PyArrowFileIO):
    """Reads and writes as pyiceberg does, and flushes what it has written to a local disk."""

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Return scheme, host and path; to pyarrow Azure's account is no part of a path."""
        scheme, host, path = PyArrowFileIO.parse_location(location, properties)
        container, at, _ = host.partition("@")
        return scheme, host, container + path.removeprefix(host) if at else path

    def new_output(self, location: str) -> PyArrowFile:
        output = super().new_output(location)
        if not isinstance(output._filesystem, fs.LocalFileSystem):
            return output
        return DurableFile(location, output._path, output._filesystem)


class DurableFile(PyArrowFile):
    """One new file."""

    def create(self, overwrite: bool = False) -> Any:
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        return DurableStream(self._path, "wb" if overwrite else "xb")


class DurableStream:
    """A file that is flushed as it is closed."""

    def __init__(self, path: str, mode: str) -> None:
        self._folder = Path(path).parent
        self._file = Path(path).open(mode)  # noqa: SIM115  # its user closes it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: bytes) -> int:
        return int(self._file.write(data))

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        flush_folder(self._folder)

    @property
    def closed(self) -> bool:
        return self._file.closed
