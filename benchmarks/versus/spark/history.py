"""Queries of a live table's history beside the same files by spark.read.parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from versus.spark.work import Session, Work, run_pipeline, scan

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

TIMES: Final = 4
"""How often a query is asked in a turn: one takes less than a second."""

Query = Callable[["DataFrame"], object]


def total(rows: DataFrame) -> None:
    from pyspark.sql import functions as sql  # the driver of all has no Spark

    rows.agg(sql.sum("offset")).collect()


def few(rows: DataFrame) -> None:
    """Of which no row group can be left out."""
    scan(rows.where("offset % 10007 = 1"))


QUERIES: Final[dict[str, Query]] = {"all rows": scan, "a sum": total, "a filter": few}


def make_table(work: Work) -> None:
    run_pipeline(work, _table(work))


def by_view(query: Query) -> Callable[[Session, Work], None]:
    """Ask the view of the live table, whose job has caught up."""

    def ask(session: Session, work: Work) -> None:
        from penstock.pipeline.live.view import register_view

        view = register_view(session(), _table(work))
        for _ in range(TIMES):
            query(session().table(view))

    return ask


def by_files(query: Query) -> Callable[[Session, Work], None]:
    def ask(session: Session, work: Work) -> None:
        files = session().read.parquet(*map(str, _table(work).glob("*.parquet")))
        for _ in range(TIMES):
            query(files)

    return ask


def _table(work: Work) -> Path:
    return work.prepared / "table"
