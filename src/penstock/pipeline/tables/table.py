"""What every table does, whatever its format.

Tasks write files that no reader sees (`Stager`, `staging.py`). The driver makes those of one batch
part of the table, once for each (query, batch), however often Spark runs the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.pipeline.tables.interface import StagedFile, TableConfig
    from penstock.pipeline.tables.staging import Stager


class Table(ABC):
    """One table; one query writes to it, any number of tasks stage files for it."""

    def __init__(self, config: TableConfig) -> None:
        self.config = config

    @property
    @abstractmethod
    def checkpoint(self) -> Path:
        """Where Spark keeps its offsets unless told otherwise."""

    @property
    @abstractmethod
    def spark_log(self) -> Path:
        """Where what Java says goes."""

    @abstractmethod
    def only_writer(self) -> AbstractContextManager[None]:
        """Return what keeps other runs away while it is open. It raises TableError."""

    @abstractmethod
    def prepare(self, schema: pa.Schema) -> Stager:
        """Make the table fit for rows of this schema; return what tasks write them with.

        Raises TableError where the place holds something else, or rows of another kind.
        """

    @abstractmethod
    def commit(self, query: str, batch: int, files: Sequence[StagedFile]) -> int:
        """Make one batch's files part of the table, durably; return its rows.

        A batch that is committed already keeps its first files, and those given now are dropped.
        Raises TableError where another query has written to the table.
        """
