"""The topics that an import writes to: made anew, empty, or begun by an import that was ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.clients.kafka.client import EARLIEST, LATEST, KafkaClient, KafkaError
from penstock.kafka.wire import ErrorCode, api
from penstock.pipeline.logs.manifest import COLUMNS, ExportError
from penstock.pipeline.logs.restoring import rows_below
from penstock.pipeline.source.offsets import OffsetRange, TopicPartition
from penstock.pipeline.source.options import SERVERS, parse
from penstock.pipeline.source.planning import Task
from penstock.pipeline.source.tasks import read_task

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from penstock.pipeline.logs.manifest import Export

_IMPORTING: Final = "penstock.importing"
WHILE_IMPORTED: Final = {
    _IMPORTING: "true",
    "cleanup.policy": "delete",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""Settings of a topic that is being made: nothing of it goes before all of it is there."""

_RESTORING: Final = api("AppendAt")


class Targets:
    """The topics of an export on a broker. Methods raise ExportError, KafkaError and OSError."""

    def __init__(self, client: KafkaClient, servers: str, folder: Path, export: Export) -> None:
        self._client = client
        self._servers = servers
        self._folder = folder
        self._export = export

    def prepare(self) -> None:
        """Make the topics that are missing and open the others, once it is clear that all of them
        can be written to.
        """
        if _RESTORING.key not in self._client.api_versions():
            raise ExportError(
                f"{self._servers} can't append at given offsets: it is no Penstock, or an older one"
            )
        missing = [name for name in self._export.topics if not self._is_there(name)]
        for name in self._export.topics.keys() - missing:
            self._client.alter_topic_config(name, {_IMPORTING: "true"})
        for name in missing:
            partitions = len(self._export.topics[name].edges)
            self._client.create_topic(name, partitions, WHILE_IMPORTED)

    def ends(self) -> dict[TopicPartition, int]:
        """Return where each partition ends."""
        return self._offsets(LATEST)

    def finish(self) -> None:
        """Give topics that hold all of it their first offsets and their settings."""
        starts = self._offsets(EARLIEST)
        for name, topic in self._export.topics.items():
            behind = {
                index: start
                for index, start in enumerate(topic.starts)
                if starts[TopicPartition(name, index)] < start
            }
            if behind:
                self._client.delete_records(name, behind)
            changes: dict[str, str | None] = {}
            if self._client.own_topic_config(name) == WHILE_IMPORTED:
                changes = {**dict.fromkeys(WHILE_IMPORTED), **topic.config}
            self._client.alter_topic_config(name, {**changes, _IMPORTING: None})

    def _is_there(self, name: str) -> bool:
        """Whether a topic exists; raises ExportError where it is another one."""
        try:
            (found,) = self._client.topics([name])
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return False
        topic = self._export.topics[name]
        if len(found.partitions) != len(topic.edges):
            raise ExportError(
                f"topic {name} has {len(found.partitions)} partitions, and was exported with "
                f"{len(topic.edges)}: delete it, and import makes it anew"
            )
        for partition, edges in enumerate(topic.edges):
            self._check_begun(TopicPartition(name, partition), edges[-1], str(found.topic_id))
        return True

    def _check_begun(self, target: TopicPartition, exported_end: int, topic_id: str) -> None:
        """Hold the last record that is there against the same one of the export."""
        place: tuple[str, int] = target
        start, end = (
            self._client.list_offsets({place: at})[place] or 0 for at in (EARLIEST, LATEST)
        )
        exported = self._last_exported(target, end)
        first = start if exported is None else exported.column("offset")[0].as_py()
        if first < start and end == exported_end:
            return  # All of it was imported, and retention has begun since.
        there = _rows(self._servers, OffsetRange(target, max(first, start), end), topic_id)
        wanted = [] if exported is None else exported.to_pylist()
        if end > exported_end or there != wanted:
            raise ExportError(
                f"{target} is not empty, and what it holds is not what was exported: delete the "
                "topic, and import makes it anew"
            )

    def _last_exported(self, target: TopicPartition, end: int) -> pa.RecordBatch | None:
        """Return the last row of a partition below an offset, as a batch."""
        files = [each for each in self._export.files(target.topic) if each.source == target]
        for file in reversed(files):
            if file.start < end:
                for rows in rows_below(self._folder / file.name, end):
                    return rows.slice(rows.num_rows - 1)
        return None

    def _offsets(self, at: int) -> dict[TopicPartition, int]:
        asked: dict[tuple[str, int], int] = {
            (name, index): at
            for name, topic in self._export.topics.items()
            for index in range(len(topic.edges))
        }
        found = self._client.list_offsets(asked)
        return {TopicPartition(*place): offset or 0 for place, offset in found.items()}


def _rows(servers: str, span: OffsetRange, topic_id: str) -> list[dict[str, Any]]:
    """Return what a broker holds of a range, as it would be exported; the first two rows of it."""
    given = {
        SERVERS: servers,
        "subscribe": span.source.topic,
        "columns": ",".join(COLUMNS),
        "includeHeaders": "true",
        "readMode": "wire",
    }
    found: list[dict[str, Any]] = []
    if span.rows > 0:
        for batch in read_task(Task(span, None, None, topic_id), parse(given, streaming=False)):
            found += batch.slice(0, 2).to_pylist()
            if len(found) > 1:
                break
    return found
