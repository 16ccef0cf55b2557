"""What every table does, whatever its format.

Tasks write files that no reader sees (`Stager`, `staging.py`). The driver makes those of one batch
part of the table, once for each (query, batch), however often Spark runs the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipeline.tables.interface import TableError, state_folder
from penstock.pipeline.tables.locks import locked, taking_turns
from penstock.pipeline.tables.places import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from penstock.pipeline.source.offsets import OffsetsJson
    from penstock.pipeline.tables.interface import (
        Held,
        Merged,
        Snapshot,
        StagedFile,
        TableConfig,
    )
    from penstock.pipeline.tables.staging import Stager


class Table(ABC):
    """One table; one query writes to it, and at times a backfill; any tasks stage files."""

    def __init__(self, config: TableConfig) -> None:
        self.config = config
        self.place = place_of(config.location)
        self.before_commit: Callable[[], None] | None = None
        """What else its turn is for."""

    @property
    def home(self) -> Path:
        """The local folder of a run's own state. Raises TableError where there is none."""
        if self.config.home is not None:
            return Path(self.config.home).absolute()
        if self.place.local is None:
            raise TableError(
                f"{self.place.uri} is in an object store: a run of its pipeline needs a local "
                "folder for offsets, lock and status"
            )
        return self.place.local

    @property
    def state(self) -> Path:
        """Where a run has what no reader looks at. Raises TableError like `home`."""
        return state_folder(self.home)

    @property
    def checkpoint(self) -> Path:
        """Where Spark keeps its offsets unless told otherwise."""
        return self.home / "_checkpoint"

    @property
    def spark_log(self) -> Path:
        """Where what Java says goes."""
        return self.state / "spark.log"

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        """Keep other runs away, of a table that can be written. Raises TableError.

        A backfill keeps other backfills away. Of runs on other machines, one of two commits fails.
        """
        name = "backfill.lock" if self.config.backfill else "lock"
        with locked(self.state / name, self.place.uri):
            self.place.check()
            yield

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Take a turn, of a run and a backfill beside it: each of their commits does."""
        with taking_turns(self.state / "commit.lock"):
            if self.before_commit is not None:
                self.before_commit()
            yield

    @abstractmethod
    def prepare(self, schema: pa.Schema) -> Stager:
        """Make the table fit for rows of this schema; return what tasks write them with.

        Raises TableError where the place holds something else, or rows of another kind.
        """

    @abstractmethod
    def commit(
        self,
        query: str,
        batch: int,
        files: Sequence[StagedFile],
        positions: OffsetsJson | None = None,
    ) -> int:
        """Make one batch's files part of the table, durably; return its rows.

        `positions` is where the next batch begins, for those who read on from there. A batch that
        is committed already keeps its first files, and those given now are dropped. Raises
        TableError where another query has written to the table, or where that batch ended
        elsewhere.
        """

    @abstractmethod
    def is_there(self) -> bool:
        """Whether somebody has made the table, also where it has no rows yet."""

    @abstractmethod
    def held(self, query: str) -> Held | None:
        """Return the newest batch of a query that a table that is there holds; None for none."""

    def was_taken_back(self, query: str) -> bool:  # noqa: ARG002  # a folder has no versions
        """Whether a table that is there holds an older batch of a query than was its newest one.

        Other engines can make an older version of a table its newest one.
        """
        return False

    def lacks_filled(self, query: str) -> bool:  # noqa: ARG002  # a folder has no versions
        """Whether what a backfill wrote after a query's newest batch went again.

        That is of the version of which `held` told last.
        """
        return False

    @abstractmethod
    def missing(self) -> list[str]:
        """Return the names of data files, sorted, that the table is made of and that are gone.

        A plain folder of Parquet knows those of its newest batches. Raises TableError where what
        the table is known by is damaged.
        """

    @abstractmethod
    def snapshot(self) -> Snapshot | None:
        """Return what the table is made of now; None where it has no batch yet.

        It is whole whatever a run writes or merges meanwhile. Raises TableError where the table's
        rows are more than those of its files, or the newest batch does not say where it ends.
        """

    @abstractmethod
    def compact(self) -> Merged:
        """Merge all small files, beside a run too; each row is there once at any moment.

        Raises TableError where the table can't have that, or no query has written to it.
        """
