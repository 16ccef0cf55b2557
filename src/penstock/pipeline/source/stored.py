"""The stored batches of a task's range, from segment files or from the broker.

What is damaged in a file, or missing there, is asked of the broker unless `readMode` is `log`; what
nobody has any more is for `onCorruption` to judge. Chunks of Pulsar's messages come as they are.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from penstock.clients.kafka.client import EARLIEST, DamagedBatchError, KafkaError
from penstock.log.errors import CorruptBatchError, LogError
from penstock.log.reader import read_range
from penstock.pipeline.source.cluster import is_reachable
from penstock.pipeline.source.corruption import Damage, stored_bytes
from penstock.pipeline.source.errors import DataLossError, SourceError
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.source.patience import Patience
from penstock.pipeline.source.runs import next_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.clients.kafka.client import KafkaClient
    from penstock.clients.kafka.fetched import Fetched
    from penstock.pipeline.source.offsets import TopicPartition
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import Task
    from penstock.session import Buffer

logger = logging.getLogger(__name__)

CHUNK_BYTES: Final = 4 << 20
"""Stored bytes that are decoded at once: Spark takes Arrow batches of 1 to 4 MB fastest."""
_PAUSE_SECONDS: Final = 0.1
_NO_ID: Final = "0" * 32
_OF_TOPICS: Final = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"})
"""What brokers answer where a topic is not there, by name or by id."""


class StoredBatches:
    """What one task reads, run by run; `met` hears of damage and raises where that is the end."""

    def __init__(
        self,
        task: Task,
        options: SourceOptions,
        met: Callable[[Damage], None],
        client: KafkaClient,
    ) -> None:
        self._task = task
        self._options = options
        self._met = met
        self._client = client
        self._patience = Patience(answered=True)  # for the driver has just read the offsets
        known = UUID(task.topic_id or _NO_ID)
        self._topic_id = known if known.int else None

    def runs(self) -> Iterator[Buffer]:
        """Yield runs of whole, sound batches in the order of the log. Raises SourceError."""
        position, end = self._task.range.start, self._task.range.end
        while position < end:
            try:
                for run in self._files(position, end):
                    yield run
                    position = next_offset(run, position)
            except CorruptBatchError as damage:
                for run in self._behind(damage, position):
                    yield run
                    position = next_offset(run, position)
                position = max(position, damage.next_offset)
            except (LogError, OSError) as error:
                if self._options.read_mode is ReadMode.LOG:
                    if self._goes_on_without(position, error):
                        return
                    raise SourceError(
                        f"the segments of {self._task.range.source} can't be read at offset "
                        f"{position}, and readMode is log: {error}"
                    ) from error
                text = "%s: from offset %d on the broker is asked: %s"
                logger.warning(text, self._task.range, position, error)
                yield from self._broker(position, end)
                return
            else:
                yield from self._broker(position, end)
                return

    def earlier(self, start: int, end: int) -> Iterator[Buffer]:
        """Yield runs from a place before the range, where chunks of a message may lie."""
        elsewhere = self._broker(start, end, met=_is_no_matter)
        try:
            yield from self._files(start, end)
        except (LogError, OSError):
            yield from elsewhere
        else:
            if not self._reads_files:
                yield from elsewhere

    def aborted(self, offset: int) -> Fetched:
        """Read what is committed from an offset on, for the transactions that were aborted."""
        source = self._task.range.source
        fetch = self._client.fetch_stored
        try:
            return self._patience.ask(
                lambda: fetch(*source, offset, committed=True, topic_id=self._topic_id)
            )
        except (KafkaError, OSError) as error:
            raise SourceError(
                f"{self._options.servers} does not say which transactions on {source} were "
                f"aborted: {error}"
            ) from error

    @property
    def _reads_files(self) -> bool:
        is_wire = self._options.read_mode is ReadMode.WIRE
        return not is_wire and None not in (self._task.data_folder, self._task.folder)

    def _files(self, start: int, end: int) -> Iterator[Buffer]:
        task = self._task
        if not self._reads_files or task.data_folder is None or task.folder is None:
            return iter(())
        if not is_reachable(task.data_folder):
            raise FileNotFoundError(f"{task.data_folder.path} is not the broker's data folder here")
        folder = task.data_folder.path / task.folder
        return read_range(folder, start, end, chunk_bytes=CHUNK_BYTES)

    def _behind(self, error: CorruptBatchError, position: int) -> Iterator[Buffer]:
        """Yield what the broker has in place of what is damaged in a file, if anything."""
        if self._options.read_mode is ReadMode.LOG:
            self._met(self._damage(error))
            return
        logger.warning("%s: the broker is asked: %s", self._task.range, error)
        end = min(error.next_offset, self._task.range.end)
        yield from self._broker(position, end, met=lambda _: self._met(self._damage(error)))

    def _damage(self, error: CorruptBatchError) -> Damage:
        return Damage(
            self._task.range.source,
            error.base_offset,
            error.next_offset,
            "its bytes are damaged",
            Path(error.path).name,
            error.position,
            stored_bytes(error.path, error.position, error.end_position),
        )

    def _broker(
        self, position: int, end: int, met: Callable[[Damage], None] | None = None
    ) -> Iterator[Buffer]:
        source = self._task.range.source
        deadline = time.monotonic() + self._options.poll_timeout_s
        while position < end:
            try:
                run = self._fetched(position).batches
            except DamagedBatchError as damage:
                (met or self._met)(_of_broker(source, damage))
                position = max(position + 1, damage.next_offset)
                continue
            except KafkaError as error:
                if error.code.name in _OF_TOPICS and self._goes_on_without(position, error):
                    return
                position = self._start_now(position, end, error)
                continue
            if run:
                yield run
                position = next_offset(run, position)
                deadline = time.monotonic() + self._options.poll_timeout_s
            elif time.monotonic() > deadline:
                raise SourceError(
                    f"{self._options.servers} had nothing of {source} at offset {position} for "
                    "as long as kafkaConsumer.pollTimeoutMs"
                )
            else:
                time.sleep(_PAUSE_SECONDS)

    def _fetched(self, position: int) -> Fetched:
        source = self._task.range.source
        try:
            return self._patience.ask(
                lambda: self._client.fetch_stored(
                    *source, position, max_bytes=CHUNK_BYTES, topic_id=self._topic_id
                )
            )
        except OSError as error:
            raise self._unread(position, error) from error

    def _start_now(self, position: int, end: int, error: KafkaError) -> int:
        """Return where a partition begins of which something was given up meanwhile."""
        source = self._task.range.source
        is_gone = error.code.name == "OFFSET_OUT_OF_RANGE"
        if not is_gone or self._options.fail_on_data_loss:
            raise self._unread(position, error) from error
        asked: dict[tuple[str, int], int] = {source: EARLIEST}
        start = self._patience.ask(lambda: self._client.list_offsets(asked))[source]
        if start is None or start <= position:
            raise self._unread(position, error) from error
        logger.warning("%s: offsets %d..%d are gone", source, position, min(start, end) - 1)
        return start

    def _goes_on_without(self, position: int, error: Exception) -> bool:
        """Whether the topic is gone and may be; raises DataLossError where it may not."""
        if not self._is_gone():
            return False
        source, end = self._task.range.source, self._task.range.end
        what = (
            f"{source} was to be read from offset {position} up to {end} and is gone: topic "
            f"{source.topic} was deleted meanwhile"
        )
        if self._options.fail_on_data_loss:
            raise DataLossError(what) from error
        logger.warning("%s; failOnDataLoss is false, so the read goes on without it", what)
        return True

    def _is_gone(self) -> bool:
        """Whether the topic that the offsets are of is there no more, or was made anew."""
        if self._topic_id is None:
            return False
        name = self._task.range.source.topic
        try:
            (found,) = self._patience.ask(lambda: self._client.topics([name]))
        except KafkaError as error:
            return error.code.name in _OF_TOPICS
        except OSError:
            return False
        return found.topic_id != self._topic_id

    def _unread(self, position: int, error: Exception) -> SourceError:
        source, servers = self._task.range.source, self._options.servers
        return SourceError(f"{source} can't be read at offset {position} from {servers}: {error}")


def _of_broker(source: TopicPartition, damage: DamagedBatchError) -> Damage:
    segment, position = damage.segment or (None, None)
    return Damage(
        source,
        damage.base_offset,
        damage.next_offset,
        "its bytes are damaged",
        None if segment is None else f"{segment:020}.log",
        position,
        damage.data,
    )


def _is_no_matter(_: Damage) -> None:
    """What lies before the range was judged where it was read."""
