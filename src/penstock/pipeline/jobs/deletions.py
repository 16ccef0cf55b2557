"""The keys that a topic's messages take away from where a table with keys begins.

A backfill must not bring them back. They are read up to the topics' end, also where the job is
behind: it will come to them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.jobs.settings import range_options, source_options
from penstock.pipeline.source.offsets import EARLIEST, from_json, to_json, topic_ids
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.readers import BatchReader, TaskPartition
from penstock.pipeline.source.tasks import read_tasks
from penstock.pipeline.tables.changes import DELETED, as_changes
from penstock.pipeline.tables.filling import DeletedKeys
from penstock.pipeline.tables.interface import ChangeForm
from penstock.pipeline.tables.shaping import Shape, shape_of
from penstock.pipeline.values.options import DEAD_LETTER, ON_PARSE_ERROR, OnParseError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.source.offsets import OffsetsJson

_NOTED_ROWS: Final = 1_000_000
"""Keys that one file of the note holds, about."""


class Deletions:
    """Follows a table's topics from its beginning on."""

    def __init__(
        self, config: PipelineConfig, state: Path, start: OffsetsJson, beginning: OffsetsJson
    ) -> None:
        """Begin at the table's beginning, before which rows from `start` on are to be added."""
        self._config = config
        self._noted = DeletedKeys(state)
        self._position = beginning
        starts, stops = from_json(start), from_json(beginning)
        self._complete = {source for source in stops if starts.get(source) == stops[source]}
        """Partitions of which nothing is to be added: what they have lost deletes no such row."""
        self._files = 0

    def follow(self) -> None:
        """Note what has been deleted up to now. Raises SourceError and SchemaError."""
        config = self._config
        shape = shape_of(parse(self._options(), streaming=True), config.changes)
        if config.changes is ChangeForm.ROWS and "value" not in shape.schema.names:
            return  # Rows of parsed values take no key away.
        end = self._latest()
        keys: list[pa.RecordBatch] = []
        rows = 0
        for found in self._deleted(shape, end):
            keys.append(found)
            rows += found.num_rows
            if rows >= _NOTED_ROWS:
                self._note(keys)
                keys, rows = [], 0
        self._note(keys)
        self._position = end

    def _note(self, keys: list[pa.RecordBatch]) -> None:
        if not keys:
            return
        names = list(self._config.key)
        distinct = pa.Table.from_batches(keys).group_by(names, use_threads=False).aggregate([])
        self._noted.note(f"live-{self._files:020}", distinct)
        self._files += 1

    def _deleted(self, shape: Shape, end: OffsetsJson) -> Iterator[pa.RecordBatch]:
        spans = {"startingOffsets": self._position, "endingOffsets": end}
        texts = {name: json.dumps(offsets) for name, offsets in spans.items()}
        options = parse(_reading_only(range_options(self._config, texts)), streaming=False)
        for partition in BatchReader(options).partitions():
            if not isinstance(partition, TaskPartition):
                continue
            for rows in shape.rows(read_tasks(partition.tasks, options, partition.typed)):
                changes = as_changes(rows, self._config.changes, self._config.key)
                gone = changes.filter(changes.column(DELETED))
                if gone.num_rows:
                    yield gone.select(list(self._config.key))

    def _latest(self) -> OffsetsJson:
        """Return where the topics end, where they go on from what was read."""
        options = parse(self._options(), streaming=True)
        with open_cluster(options) as cluster:
            planner = Planner(options, cluster)
            ids = planner.topic_ids()
            known = planner.of_same_topics(
                from_json(self._position), topic_ids(self._position), ids
            )
            latest = planner.following(known, planner.latest())
            oldest = cluster.ends(sorted(self._complete & known.keys()), EARLIEST)
        known |= {source: max(known[source], offset) for source, offset in oldest.items()}
        for source in latest.keys() - known.keys():
            known[source] = EARLIEST
        self._position = to_json(known, ids)
        return to_json(latest, ids)

    def _options(self) -> dict[str, str]:
        return _reading_only(source_options(self._config))


def _reading_only(options: dict[str, str]) -> dict[str, str]:
    """Return options by which rows that can't be parsed are put nowhere: the job does that."""
    if options.pop(DEAD_LETTER, None) is not None:
        options[ON_PARSE_ERROR] = OnParseError.DROP.value
    return options
