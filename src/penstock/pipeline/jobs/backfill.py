"""Rows that are older than those a table began with, added beside the job that goes on writing it.

What lies before the table's beginning is read in batches of a query of its own, which the table
knows beside the job's; their commits take turns. When all of it is there, the table begins where
the backfill did. So each row is in the table once, whatever ends a backfill: the next run goes on
where it was, and no range is read that the table has.
"""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PySparkException

from penstock.pipeline.causes import cause_of
from penstock.pipeline.jobs.beginning import Beginning
from penstock.pipeline.jobs.checkpoint import Checkpoint
from penstock.pipeline.jobs.checks import CheckError, look
from penstock.pipeline.jobs.config import WriteMode
from penstock.pipeline.jobs.deletions import Deletions
from penstock.pipeline.jobs.opening import writing_of
from penstock.pipeline.jobs.settings import range_options
from penstock.pipeline.jobs.small import SMALL_ROWS, Batch, write_here
from penstock.pipeline.jobs.writing import Written
from penstock.pipeline.session import LOCAL, is_open, open_session
from penstock.pipeline.source.offsets import (
    Offsets,
    TopicPartition,
    from_json,
    limit_rows,
    to_json,
    topic_ids,
)
from penstock.pipeline.source.options import parse
from penstock.pipeline.tables.filling import BACKFILL
from penstock.pipeline.tables.interface import state_folder, taken_back
from penstock.pipeline.tables.staged_files import TableFilesBatchReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.source.offsets import OffsetsJson

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
"""Local properties with which Spark runs the tasks of a stream, and those of a backfill."""


class Plan(NamedTuple):
    """What a backfill reads, decided once."""

    asked: str
    """Where it was asked to begin."""
    start: OffsetsJson
    stop: OffsetsJson


class Filled(NamedTuple):
    """How far a backfill is."""

    batches: int
    rows: int
    behind: int


class Backfill:
    """One run of a backfill; `stop` may be called from another thread or a signal handler."""

    def __init__(
        self, config: PipelineConfig, each_batch: Callable[[Mapping[str, Any]], None]
    ) -> None:
        """Prepare a run. Raises CheckError where the table can't be filled."""
        _check(config)
        self._state = state_folder(config.table)
        self._folder = self._state / BACKFILL
        checkpoint = self._folder / "checkpoint"
        self._config = replace(config, backfill=True, checkpoint=checkpoint)
        self._checkpoint = Checkpoint(checkpoint)
        self._writing = writing_of(self._config)
        self._each_batch = each_batch
        self._stop = threading.Event()

    def stop(self) -> None:
        """End after the batch that is being written; another run goes on from there."""
        self._stop.set()

    def run(self, begin: str) -> Filled:
        """Add what lies between `begin`, as `starting_offsets` has it, and the table's beginning.

        Raises CheckError, SourceError, OptionError, TableError and SessionError.
        """
        with self._writing.table.only_writer():
            plan = self._plan(begin)
            self._check_not_taken_back()
            if self._by_key:
                deletions = Deletions(self._config, self._state, plan.start, plan.stop)
                deletions.follow()  # of which there may be much: the job goes on meanwhile
                self._writing.table.before_commit = deletions.follow
            batches = rows = 0
            for batch, behind, written in self._batches(plan):
                batches, rows = batches + 1, rows + written.rows
                figures = {"batch": batch, "rows": written.rows, "unmet": written.unmet}
                self._each_batch(figures | {"behind": behind})
                if self._stop.is_set():
                    return Filled(batches, rows, behind)
            Beginning(self._state).note(plan.start)
            shutil.rmtree(self._folder)
            return Filled(batches, rows, 0)

    def _check_not_taken_back(self) -> None:
        table, newest = self._writing.table, self._checkpoint.newest()
        if newest is None or not self._config.fail_on_data_loss or not table.is_there():
            return
        if table.was_taken_back(self._checkpoint.query()):
            raise taken_back(table.place.uri)

    def _plan(self, begin: str) -> Plan:
        path = self._folder / "plan.json"
        if path.exists():
            plan = Plan(**json.loads(path.read_bytes()))
            if plan.asked != begin:
                raise CheckError(
                    f"a backfill of {self._config.table} from {plan.asked} is not at its end: "
                    "let that one finish first"
                )
            return plan
        plan = _planned(self._config, begin, Beginning(self._state).read())
        self._folder.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(plan._asdict()))
        draft.replace(path)
        return plan

    def _batches(self, plan: Plan) -> Iterator[tuple[int, int, Written]]:
        """Do what a run before left undone, and then the rest; yield each batch when done.

        With it comes how many rows are left. By key the newest rows go first: what is there already
        is the newer row of its key.
        """
        query = self._checkpoint.query()
        write = self._here if self._is_small(plan) else self._by_spark
        begin, goal = (plan.stop, plan.start) if self._by_key else (plan.start, plan.stop)
        number, position, end = self._checkpoint.resumed(lambda: begin)
        while end is not None or position != goal:
            if end is None:
                end = self._next(position, goal)
                self._checkpoint.plan(number, end)
            span = (end, position) if self._by_key else (position, end)
            written = write(Batch(query, number, end), _between(*span))
            self._checkpoint.finish(number)
            yield number, abs(_rows(end, goal)), written
            number, position, end = number + 1, end, None

    def _next(self, position: OffsetsJson, goal: OffsetsJson) -> OffsetsJson:
        """Return how far the next batch goes."""
        begin, end = from_json(position), from_json(goal)
        if self._by_key:
            begin, end = _mirrored(begin), _mirrored(end)
        until = limit_rows(begin, end, self._config.batch_rows)
        return to_json(_mirrored(until) if self._by_key else until, topic_ids(goal))

    @property
    def _by_key(self) -> bool:
        return self._config.mode is WriteMode.UPSERT

    def _is_small(self, plan: Plan) -> bool:
        config = self._config
        if config.needs_spark or config.master != LOCAL or is_open():
            return False
        return _rows(plan.start, plan.stop) <= SMALL_ROWS

    def _here(self, batch: Batch, ends: Mapping[str, str]) -> Written:
        options = parse(range_options(self._config, ends), streaming=False)
        table = self._writing.table
        partitions = TableFilesBatchReader(options, table.config).partitions()
        return Written(write_here(table, options, batch, partitions))

    def _by_spark(self, batch: Batch, ends: Mapping[str, str]) -> Written:
        log = self._writing.table.spark_log
        spark = open_session("penstock backfill", self._config.master, log)
        properties = {_QUERY: batch.query, _BATCH: str(batch.number)}
        try:
            for name, value in properties.items():
                spark.sparkContext.setLocalProperty(name, value)
            frame = self._writing.between(spark, ends)
            return self._writing.write(frame, batch.number)
        except PySparkException as error:
            raise CheckError(cause_of(error)) from error
        finally:
            for name in properties:
                spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]


def _check(config: PipelineConfig) -> None:
    why = None
    if config.target_topic is not None:
        why = "a topic can only be appended to, and what is older would stand behind what is newer"
    elif config.mode is WriteMode.UPSERT and config.expectations:
        why = "whether a newer deletion meets the expectations is known to its job alone"
    elif config.deduplication is not None:
        why = "nobody could say which of its rows are doubles of those that the table has"
    if why:
        raise CheckError(
            f"{config.target} can't be filled from behind: {why}. Begin another one from earliest"
        )


def _planned(config: PipelineConfig, begin: str, beginning: OffsetsJson | None) -> Plan:
    if beginning is None:
        raise CheckError(
            f"{config.table} does not say where it begins: no run has begun it, or one of an "
            "earlier version of Penstock. Begin a new table from earliest"
        )
    if begin.strip().lower() == "latest":
        raise CheckError("a backfill begins before the table does: at earliest, or at offsets")
    found = look(replace(config, starting_offsets=begin)).starting
    starts, stops = from_json(found), from_json(beginning)
    known = topic_ids(beginning)
    anew = [topic for topic, each in topic_ids(found).items() if known.get(topic, each) != each]
    if anew:
        raise CheckError(
            f"{', '.join(anew)} was deleted and made anew since the table was begun: there is "
            "nothing before its beginning any more"
        )
    # A partition that was added later was read from its first message on.
    stops = {source: stops.get(source, starts[source]) for source in starts}
    above = [source for source in starts if starts[source] > stops[source]]
    if above and begin.strip().lower() != "earliest":
        raise CheckError(_above(above, starts, stops))
    starts = {source: min(starts[source], stops[source]) for source in starts}
    ids = topic_ids(found)
    return Plan(begin, to_json(starts, ids), to_json(stops, ids))


def _above(sources: list[TopicPartition], starts: Offsets, stops: Offsets) -> str:
    text = ", ".join(
        f"{each} is to be read from {starts[each]} and is in the table from {stops[each]} on"
        for each in sorted(sources)
    )
    return f"{text}: rows would be there twice. Begin before the table does"


def _between(start: OffsetsJson, end: OffsetsJson) -> dict[str, str]:
    return {"startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}


def _mirrored(offsets: Offsets) -> Offsets:
    return {source: -offset for source, offset in offsets.items()}


def _rows(start: OffsetsJson, end: OffsetsJson) -> int:
    begin = from_json(start)
    return sum(offset - begin[source] for source, offset in from_json(end).items())
