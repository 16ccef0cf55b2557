"""What the planner asks the broker, over Kafka's protocol and by a look at its data folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from penstock.clients.kafka.client import KafkaClient, KafkaError
from penstock.limits import RANGE_LEASE_SECONDS
from penstock.log.layout import CLUSTER_ID_FILE, partition_directory
from penstock.pipeline.source.offsets import Offsets, TopicIds, TopicPartition
from penstock.pipeline.source.patience import Patience
from penstock.pipeline.source.planning import DataFolder, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from penstock.clients.kafka.client import TopicDescription


class KafkaCluster:
    """One broker, as the planner sees it. Methods raise SourceError where it can't be reached.

    With `committed` partitions end at the first message of a transaction that is open.
    """

    def __init__(self, servers: str, *, committed: bool) -> None:
        self._servers = servers
        self._committed = committed
        self._client = KafkaClient(servers, client_id="penstock-spark")
        self._patience = Patience(answered=False)
        self._holder = f"spark-{uuid4()}"
        self._looked_for_folder = False
        self._data_folder: DataFolder | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Count the partitions of each topic; a topic that does not exist is left out."""
        found = {topic: self._topic(topic) for topic in topics}
        return {topic: len(each.partitions) for topic, each in found.items() if each is not None}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the id of each topic; a topic that does not exist is left out."""
        found = {topic: self._topic(topic) for topic in topics}
        return {topic: str(each.topic_id) for topic, each in found.items() if each is not None}

    def ends(self, sources: Sequence[TopicPartition], end: int) -> Offsets:
        """Return the offset at one end, EARLIEST or LATEST; an unknown partition is left out."""
        counts = self.partitions(dict.fromkeys(each.topic for each in sources))
        known = [each for each in sources if each.partition < counts.get(each.topic, 0)]
        if not known:
            return {}
        try:
            asked: dict[tuple[str, int], int] = dict.fromkeys(known, end)
            found = self._patience.ask(
                lambda: self._client.list_offsets(asked, committed=self._committed)
            )
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error
        return {TopicPartition(*each): offset or 0 for each, offset in found.items()}

    def hold(self, starts: Offsets) -> None:
        """Have the broker keep what lies from these offsets on, for RANGE_LEASE_SECONDS.

        What it does not keep may be gone when it is read, which is met there.
        """
        self._hold(starts, RANGE_LEASE_SECONDS)

    def release(self) -> None:
        """Have the broker keep nothing for this reader any more."""
        self._hold({}, 0)

    def data_folder(self) -> DataFolder | None:
        """Return the broker's data folder where this process can read it."""
        if not self._looked_for_folder:
            self._data_folder = self._find_data_folder()
            self._looked_for_folder = True
        return self._data_folder

    def folders(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Path]:
        """Return where the segments of each partition lie, relative to the data folder."""
        ids = {topic: self._topic(topic) for topic in dict.fromkeys(s.topic for s in sources)}
        return {
            source: partition_directory(Path(), found.topic_id, source.partition)
            for source in sources
            if (found := ids[source.topic]) is not None
        }

    def _hold(self, starts: Offsets, seconds: int) -> None:
        asked = {(source.topic, source.partition): offset for source, offset in starts.items()}
        try:
            self._patience.ask(lambda: self._client.hold_offsets(self._holder, asked, seconds))
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error

    def _find_data_folder(self) -> DataFolder | None:
        try:
            cluster_id = self._patience.ask(self._client.cluster).cluster_id
            path = self._patience.ask(lambda: self._client.log_directory([])).path
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error
        folder = DataFolder(Path(path), cluster_id)
        return folder if is_reachable(folder) else None

    def _topic(self, name: str) -> TopicDescription | None:
        try:
            (found,) = self._patience.ask(lambda: self._client.topics([name]))
        except KafkaError as error:
            if error.code.name == "UNKNOWN_TOPIC_OR_PARTITION":
                return None
            raise self._unreachable(error) from error
        except OSError as error:
            raise self._unreachable(error) from error
        return found

    def _unreachable(self, error: Exception) -> SourceError:
        return SourceError(f"the broker at {self._servers} does not answer as it should: {error}")


def is_reachable(folder: DataFolder) -> bool:
    """Whether this process can read that folder, and it is the one of that very broker.

    A path alone says nothing: another machine may well have a folder of that name.
    """
    try:
        found = (folder.path / CLUSTER_ID_FILE).read_text()
    except OSError:
        return False
    return found.strip() == folder.cluster_id
