"""What the planner asks the broker, over Kafka's protocol and by a look at its data folder."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from penstock.clients.access import LoginError
from penstock.clients.closing import Closing
from penstock.clients.kafka.client import KafkaClient, KafkaError
from penstock.kafka.wire import ErrorCode
from penstock.limits import RANGE_LEASE_SECONDS
from penstock.log.layout import CLUSTER_ID_FILE, partition_directory
from penstock.pipeline.source.dividing import Extent
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.offsets import Offsets, TopicIds, TopicPartition
from penstock.pipeline.source.patience import Answer, Patience
from penstock.pipeline.source.planning import DataFolder

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.clients.kafka.client import LogDirectory, TopicDescription
    from penstock.pipeline.source.dividing import Extents
    from penstock.pipeline.source.options import SourceOptions


LISTING_SECONDS: Final = 5
"""How long a new topic may stay unnoticed where topics are read whose names match a pattern."""

_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class KafkaCluster(Closing):
    """One broker, as the planner sees it. Methods raise SourceError where it can't be reached.

    Where only what is committed is read, partitions end at the first message of a transaction that
    is open.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._servers = options.servers
        self._committed = options.committed
        self._client = kafka_client(options)
        self._patience = Patience(answered=False, retries=options.retries)
        self._holder = f"spark-{uuid4()}"
        self._looked_for_folder = False
        self._data_folder: DataFolder | None = None
        self._listed: list[str] = []
        self._listed_at = float("-inf")

    def close(self) -> None:
        self._client.close()

    def topics_like(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the topics whose whole name matches, but those that Kafka keeps for itself.

        They are listed every LISTING_SECONDS.
        """
        if time.monotonic() - self._listed_at > LISTING_SECONDS:
            self._listed = sorted(each.name for each in self._ask(self._client.topics))
            self._listed_at = time.monotonic()
        found = (name for name in self._listed if pattern.fullmatch(name))
        return [name for name in found if name not in _INTERNAL]

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
        found = self.at_times(dict.fromkeys(known, end))
        return {source: offset or 0 for source, offset in found.items()}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the offset of the first message of a time in ms or later, None for none."""
        if not times:
            return {}
        asked = {(source.topic, source.partition): time for source, time in times.items()}
        found = self._ask(lambda: self._client.list_offsets(asked, committed=self._committed))
        return {TopicPartition(*each): offset for each, offset in found.items()}

    def extents(self, sources: Sequence[TopicPartition]) -> Extents:
        """Return how many bytes are stored of which offsets, as far as the broker says."""
        found: dict[TopicPartition, Sequence[Extent]] = {}
        sizes: Mapping[tuple[str, int], int] | None = None
        for topic, indexes in _by_topic(sources).items():
            described = self._ask(partial(self._client.segments, topic, indexes))
            for partition, each in described.items():
                if each.segments is not None:
                    extents = [Extent(*segment) for segment in each.segments]
                else:
                    if sizes is None:
                        directory = self._log_directory()
                        sizes = directory.sizes if directory else {}
                    size = sizes.get((topic, partition), 0)
                    extents = [Extent(each.start_offset, each.end_offset, size)]
                found[TopicPartition(topic, partition)] = extents
        return found

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit offsets as a group's. Raises SourceError, as where a consumer is in the group."""
        asked = {(source.topic, source.partition): offset for source, offset in offsets.items()}
        try:
            self._patience.ask(lambda: self._client.commit_offsets(group, asked))
        except KafkaError as error:
            raise SourceError(
                f"progress can't be committed as group {group}: {error}. kafka.group.id and "
                "groupIdPrefix must lead to a group that no consumer is in"
            ) from error
        except OSError as error:
            raise self._unreachable(error) from error

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
        self._ask(lambda: self._client.hold_offsets(self._holder, asked, seconds))

    def _find_data_folder(self) -> DataFolder | None:
        cluster_id = self._ask(self._client.cluster).cluster_id
        directory = self._log_directory([])
        if directory is None:
            return None
        folder = DataFolder(Path(directory.path), cluster_id)
        return folder if is_reachable(folder) else None

    def _log_directory(self, topics: Sequence[str] | None = None) -> LogDirectory | None:
        """Return what the broker says of its folder; None to who may not Describe the cluster."""
        try:
            return self._patience.ask(lambda: self._client.log_directory(topics))
        except KafkaError as error:
            if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                return None
            raise self._unreachable(error) from error
        except (LoginError, OSError) as error:
            raise self._unreachable(error) from error

    def _topic(self, name: str) -> TopicDescription | None:
        try:
            (found,) = self._patience.ask(lambda: self._client.topics([name]))
        except KafkaError as error:
            if error.code.name == "UNKNOWN_TOPIC_OR_PARTITION":
                return None
            raise self._unreachable(error) from error
        except (LoginError, OSError) as error:
            raise self._unreachable(error) from error
        return found

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return self._patience.ask(question)
        except (KafkaError, LoginError, OSError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> SourceError:
        if isinstance(error, LoginError):
            return SourceError(f"{error}. Correct kafka.sasl.mechanism or kafka.sasl.jaas.config")
        return SourceError(f"the broker at {self._servers} does not answer as it should: {error}")


def kafka_client(options: SourceOptions) -> KafkaClient:
    """Return a client of the servers that the options name, which connects when it is asked."""
    return KafkaClient(
        options.servers,
        client_id=options.kafka.client_id,
        timeout_s=options.kafka.timeout_s,
        access=options.address.access,
    )


def _by_topic(sources: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sources:
        topics.setdefault(topic, []).append(partition)
    return topics


def is_reachable(folder: DataFolder) -> bool:
    """Whether this process can read that folder, and it is the one of that very broker.

    A path alone says nothing: another machine may well have a folder of that name.
    """
    try:
        found = (folder.path / CLUSTER_ID_FILE).read_text()
    except OSError:
        return False
    return found.strip() == folder.cluster_id
