"""A small blocking Kafka client, for Penstock's own commands and pipelines.

    with KafkaClient("127.0.0.1:9092") as client:
        client.create_topic("orders", 4)
        client.produce("orders", 0, encode_batch([Record(b"value")]))
        fetched = client.fetch("orders", 0, 0)

It asks one broker, and those beside it for what they lead, and hands out stored batches as bytes:
what the records in them mean is for `penstock.records` to say. It is not safe to share between
threads.

Every method raises KafkaError for an error that the broker answered and OSError (TimeoutError
among them) for a connection that failed, after which the next call connects anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from penstock.clients.access import OPEN, Access
from penstock.clients.closing import Closing
from penstock.clients.kafka.connection import ClientConnection, KafkaError, check
from penstock.clients.kafka.fetched import DamagedBatchError, Fetched
from penstock.clients.kafka.fetching import FetchingClient
from penstock.clients.kafka.groups import (
    GroupDescription,
    GroupMember,
    ListedGroup,
    of_classic,
    of_consumers,
)
from penstock.clients.kafka.leaders import Leaders
from penstock.clients.kafka.readers import Reader, described, of_group
from penstock.clients.kafka.segments import Segments, holding, of_kafka, of_partition
from penstock.kafka.wire import ErrorCode, api
from penstock.kafka.wire.config_resources import ConfigResource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.kafka.wire.messages import (
        DescribeConfigsResponse,
        ListOffsetsRequest,
        MetadataResponse,
        OffsetCommitRequest,
    )
    from penstock.session import Buffer

__all__ = [
    "EARLIEST",
    "LATEST",
    "Cluster",
    "DamagedBatchError",
    "Fetched",
    "GroupDescription",
    "GroupMember",
    "KafkaClient",
    "KafkaError",
    "ListedGroup",
    "LogDirectory",
    "Reader",
    "TopicDescription",
]

ALTER_CONFIGS: Final = api("IncrementalAlterConfigs")
APPEND_AT: Final = api("AppendAt")
CONSUMER_GROUP_DESCRIBE: Final = api("ConsumerGroupDescribe")
CREATE_PARTITIONS: Final = api("CreatePartitions")
CREATE_TOPICS: Final = api("CreateTopics")
DELETE_GROUPS: Final = api("DeleteGroups")
DELETE_RECORDS: Final = api("DeleteRecords")
DELETE_TOPICS: Final = api("DeleteTopics")
DESCRIBE_CLUSTER: Final = api("DescribeCluster")
DESCRIBE_CONFIGS: Final = api("DescribeConfigs")
DESCRIBE_GROUPS: Final = api("DescribeGroups")
ELECT_LEADERS: Final = api("ElectLeaders")
DESCRIBE_SEGMENTS: Final = api("DescribeSegments")
DESCRIBE_LOG_DIRS: Final = api("DescribeLogDirs")
HOLD_OFFSETS: Final = api("HoldOffsets")
LIST_GROUPS: Final = api("ListGroups")
LIST_OFFSETS: Final = api("ListOffsets")
LIST_READERS: Final = api("ListReaders")
METADATA: Final = api("Metadata")
OFFSET_COMMIT: Final = api("OffsetCommit")
OFFSET_FETCH: Final = api("OffsetFetch")
PRODUCE: Final = api("Produce")

LATEST: Final = -1
"""As a timestamp: the offset that the next record will get."""
EARLIEST: Final = -2
"""As a timestamp: the first offset that can still be read."""

SET: Final = 0
REMOVE: Final = 1
"""What is done to a configuration key."""

DEFAULT_TIMEOUT_S: Final = 30.0


class Cluster(NamedTuple):
    cluster_id: str
    brokers: Sequence[tuple[int, str, int]]
    """Node id, host and port of each."""


class TopicDescription(NamedTuple):
    name: str
    topic_id: UUID
    partitions: Sequence[int]


class LogDirectory(NamedTuple):
    path: str
    """The broker's data folder, on the broker's machine."""
    sizes: Mapping[tuple[str, int], int]
    """Bytes by topic and partition."""


class KafkaClient(FetchingClient, Closing):
    """`servers` is `host:port`, or several with commas, of which the first that answers is used."""

    def __init__(
        self,
        servers: str,
        *,
        client_id: str = "penstock",
        timeout_s: float = DEFAULT_TIMEOUT_S,
        access: Access = OPEN,
    ) -> None:
        super().__init__(ClientConnection(servers, client_id, timeout_s, access))
        self._leaders = Leaders(self._connection)

    def close(self) -> None:
        self._leaders.close()
        self._connection.close()

    def _leader(self, topic: str, partition: int) -> ClientConnection:
        return self._leaders.of(topic, partition)

    def _check_leader(self, code: int, place: str) -> None:
        self._leaders.check(code, place)

    # The cluster

    def cluster(self) -> Cluster:
        response = self._connection.send(DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.request())
        check(response.error_code, response.error_message)
        brokers = [(each.broker_id, each.host, each.port) for each in response.brokers]
        return Cluster(response.cluster_id, brokers)

    def log_directory(self, topics: Iterable[str] | None = None) -> LogDirectory:
        """Where the broker keeps its data, with the sizes of some topics' partitions or of all.

        Of several brokers or folders it is the first, with the sizes in all of them. Raises
        KafkaError CLUSTER_AUTHORIZATION_FAILED for who may not Describe the cluster.
        """
        asked = None
        if topics is not None:
            asked = [
                DESCRIBE_LOG_DIRS.request.DescribableLogDirTopic(
                    topic=each.name, partitions=list(each.partitions)
                )
                for each in self.topics(topics)
            ]
        results = []
        for broker in self._leaders.all():
            response = broker.send(DESCRIBE_LOG_DIRS, DESCRIBE_LOG_DIRS.request(topics=asked))
            check(response.error_code)
            results += response.results
        if not results:  # So brokers older than Kafka 3.2 say it.
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        # A folder on a broken disk has no sizes, and those beside it do.
        sound = [each for each in results if each.error_code == ErrorCode.NONE]
        if not sound:
            check(results[0].error_code)
        sizes: dict[tuple[str, int], int] = {}
        for topic in (topic for result in sound for topic in result.topics):
            for each in topic.partitions:
                place = topic.name, each.partition_index
                sizes[place] = max(each.partition_size, sizes.get(place, 0))
        return LogDirectory(sound[0].log_dir, sizes)

    # Topics

    def topics(
        self, names: Iterable[str] | None = None, *, create: bool = False
    ) -> list[TopicDescription]:
        """Describe topics, or all of them; with `create` the broker may create those it has not.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION for a name that is not there.
        """
        asked = None
        if names is not None:
            asked = [METADATA.request.MetadataRequestTopic(name=name) for name in names]
        request = METADATA.request(topics=asked, allow_auto_topic_creation=create)
        response = self._connection.send(METADATA, request)
        return [_topic(each) for each in response.topics]

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str] | None = None
    ) -> None:
        topic = CREATE_TOPICS.request.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[
                CREATE_TOPICS.request.CreatableTopicConfig(name=key, value=value)
                for key, value in (config or {}).items()
            ],
        )
        (result,) = self._connection.send(
            CREATE_TOPICS, CREATE_TOPICS.request(topics=[topic])
        ).topics
        check(result.error_code, result.error_message)

    def add_partitions(self, name: str, count: int) -> None:
        """Let a topic grow to so many partitions."""
        types = CREATE_PARTITIONS.request
        asked = types.CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = types(topics=[asked], timeout_ms=self._connection.timeout_ms)
        (result,) = self._connection.send(CREATE_PARTITIONS, request).results
        check(result.error_code, result.error_message)

    def elect_leaders(self, topic: str, partitions: Sequence[int]) -> list[int]:
        """Have partitions reopened that take no writes; return those that were."""
        types = ELECT_LEADERS.request
        asked = types.TopicPartitions(topic=topic, partitions=list(partitions))
        response = self._connection.send(ELECT_LEADERS, types(topic_partitions=[asked]))
        check(response.error_code)
        elected = []
        for found in response.replica_election_results[0].partition_result:
            if found.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                check(found.error_code, found.error_message)
                elected.append(found.partition_id)
        return elected

    def delete_topic(self, name: str) -> None:
        request = DELETE_TOPICS.request(
            topics=[DELETE_TOPICS.request.DeleteTopicState(name=name)],
            topic_names=[name],
            timeout_ms=self._connection.timeout_ms,
        )
        (result,) = self._connection.send(DELETE_TOPICS, request).responses
        check(result.error_code, result.error_message)

    def topic_config(self, name: str) -> dict[str, str | None]:
        """Every configuration key of a topic with its value."""
        return {each.name: each.value for each in self._configs(name)}

    def own_topic_config(self, name: str) -> dict[str, str | None]:
        """Those configuration keys of a topic that were set for it, with their values."""
        return {each.name: each.value for each in self._configs(name) if each.config_source == 1}

    def alter_topic_config(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configuration keys of a topic, or remove those that are None: all or none."""
        types = ALTER_CONFIGS.request
        configs = [
            types.AlterableConfig(
                name=key, value=value, config_operation=REMOVE if value is None else SET
            )
            for key, value in changes.items()
        ]
        asked = types.AlterConfigsResource(
            resource_type=ConfigResource.TOPIC, resource_name=name, configs=configs
        )
        (result,) = self._connection.send(ALTER_CONFIGS, types(resources=[asked])).responses
        check(result.error_code, result.error_message)

    def _configs(self, topic: str) -> list[DescribeConfigsResponse.DescribeConfigsResourceResult]:
        resource = DESCRIBE_CONFIGS.request.DescribeConfigsResource(
            resource_type=ConfigResource.TOPIC, resource_name=topic, configuration_keys=None
        )
        request = DESCRIBE_CONFIGS.request(resources=[resource])
        (result,) = self._connection.send(DESCRIBE_CONFIGS, request).results
        check(result.error_code, result.error_message)
        return result.configs

    def segments(self, topic: str, partitions: Sequence[int]) -> dict[int, Segments]:
        """In which pieces partitions are stored; in one that is not known, elsewhere than here."""
        if DESCRIBE_SEGMENTS.key not in self.api_versions():
            return of_kafka(topic, partitions, self.list_offsets)
        types = DESCRIBE_SEGMENTS.request
        asked = types.TopicRequest(name=topic, partition_indexes=list(partitions))
        response = self._connection.send(DESCRIBE_SEGMENTS, types(topics=[asked]))
        for each in response.topics[0].partitions:
            check(each.error_code)
        return dict(map(of_partition, response.topics[0].partitions))

    def hold_offsets(
        self, holder: str, offsets: Mapping[tuple[str, int], int], seconds: int
    ) -> None:
        """Have retention keep what lies from offsets on; a broker that is not Penstock does not."""
        if HOLD_OFFSETS.key in self.api_versions():
            self._connection.send(HOLD_OFFSETS, holding(holder, offsets, seconds))

    def delete_records(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Give up the messages below an offset of each of these partitions."""
        types = DELETE_RECORDS.request
        asked = [
            types.DeleteRecordsPartition(partition_index=index, offset=offset)
            for index, offset in offsets.items()
        ]
        topics = [types.DeleteRecordsTopic(name=topic, partitions=asked)]
        request = types(topics=topics, timeout_ms=self._connection.timeout_ms)
        for each in self._connection.send(DELETE_RECORDS, request).topics[0].partitions:
            check(each.error_code)

    # Records

    def produce(self, topic: str, partition: int, batch: Buffer, *, acks: int = -1) -> int:
        """Append one batch and return its base offset; `acks` -1 waits for it to be durable.

        With `acks` 0 the broker answers nothing, and the offset is -1.
        """
        data = PRODUCE.request.TopicProduceData(
            name=topic,
            partition_data=[PRODUCE.request.PartitionProduceData(index=partition, records=batch)],
        )
        request = PRODUCE.request(
            acks=acks, timeout_ms=self._connection.timeout_ms, topic_data=[data]
        )
        if acks == 0:
            self._connection.send_unanswered(PRODUCE, request)
            return -1
        response = self._connection.send(PRODUCE, request)
        result = response.responses[0].partition_responses[0]
        check(result.error_code, result.error_message)
        return result.base_offset

    def append_at(
        self, topic: str, partition: int, end: int, offset: int, batch: Buffer | None
    ) -> None:
        """Append one batch at an offset to a partition that ends at `end`; without one, what lies
        between the two becomes a gap. A broker that is not Penstock can't.
        """
        request = APPEND_AT.request(
            topic=topic, partition_index=partition, end_offset=end, base_offset=offset
        )
        request.records = batch
        response = self._connection.send(APPEND_AT, request)
        check(response.error_code, response.error_message)

    def list_offsets(
        self, timestamps: Mapping[tuple[str, int], int], *, committed: bool = False
    ) -> dict[tuple[str, int], int | None]:
        """By topic and partition, the offset of the first record at or after a time in ms.

        None where there is none. EARLIEST and LATEST stand for the ends; with `committed` all lies
        below the last stable offset.
        """
        offsets: dict[tuple[str, int], int | None] = {}
        for leader, places in self._leaders.grouped(timestamps).items():
            asked = {place: timestamps[place] for place in places}
            for result in leader.send(LIST_OFFSETS, _listing(asked, committed=committed)).topics:
                for each in result.partitions:
                    place = result.name, each.partition_index
                    self._check_leader(each.error_code, f"{result.name}-{each.partition_index}")
                    offsets[place] = each.offset if each.offset >= 0 else None
        return offsets

    # Groups

    def groups(self) -> list[ListedGroup]:
        response = self._connection.send(LIST_GROUPS, LIST_GROUPS.request())
        check(response.error_code)
        return [
            ListedGroup(each.group_id, each.protocol_type, each.group_state)
            for each in response.groups
        ]

    def describe_group(self, group_id: str) -> GroupDescription:
        """Describe a group; raises KafkaError GROUP_ID_NOT_FOUND when there is none."""
        (group,) = self._connection.send(
            DESCRIBE_GROUPS, DESCRIBE_GROUPS.request(groups=[group_id])
        ).groups
        is_absent = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if is_absent and CONSUMER_GROUP_DESCRIBE.key in self.api_versions():
            request = CONSUMER_GROUP_DESCRIBE.request(group_ids=[group_id])
            (found,) = self._connection.send(CONSUMER_GROUP_DESCRIBE, request).groups
            check(found.error_code, found.error_message)
            return of_consumers(found)
        check(group.error_code, group.error_message)
        return of_classic(group)

    def committed_offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """All offsets that the group has committed, by topic and partition."""
        asked = OFFSET_FETCH.request.OffsetFetchRequestGroup(group_id=group_id, topics=None)
        (group,) = self._connection.send(OFFSET_FETCH, OFFSET_FETCH.request(groups=[asked])).groups
        check(group.error_code)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in group.topics
            for each in topic.partitions
        }

    def commit_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit for a group that has no members; what comes before a failure stays committed."""
        types = OFFSET_COMMIT.request
        by_topic: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(
                types.OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=""
                )
            )
        topics = [
            types.OffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ]
        coordinator = self._leaders.coordinator(group_id)
        for result in coordinator.send(
            OFFSET_COMMIT, types(group_id=group_id, topics=topics)
        ).topics:
            for each in result.partitions:
                self._check_leader(each.error_code, f"{result.name}-{each.partition_index}")

    def delete_group(self, group_id: str) -> None:
        request = DELETE_GROUPS.request(groups_names=[group_id])
        (result,) = self._connection.send(DELETE_GROUPS, request).results
        check(result.error_code)

    def readers(self, name: str | None = None) -> list[Reader]:
        """Describe the groups and subscriptions of all protocols, or those of one name.

        A broker that is not Penstock tells of Kafka's groups alone.
        """
        if LIST_READERS.key not in self.api_versions():
            listed = [each for each in self.groups() if name in (None, each.group_id)]
            return [self._reader(each) for each in listed]
        request = LIST_READERS.request(names=None if name is None else [name])
        response = self._connection.send(LIST_READERS, request)
        check(response.error_code)
        return [described(each) for each in response.readers]

    def _reader(self, group: ListedGroup) -> Reader:
        members = self.describe_group(group.group_id).members
        committed = self.committed_offsets(group.group_id)
        ends = self.list_offsets(dict.fromkeys(committed, LATEST))
        return of_group(
            group.group_id,
            group.protocol_type,
            group.state,
            [each.assigned for each in members],
            {place: (offset, ends[place]) for place, offset in committed.items()},
        )


def _listing(timestamps: Mapping[tuple[str, int], int], *, committed: bool) -> ListOffsetsRequest:
    by_topic: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
    for (topic, partition), timestamp in timestamps.items():
        asked = LIST_OFFSETS.request.ListOffsetsPartition(
            partition_index=partition, timestamp=timestamp
        )
        by_topic.setdefault(topic, []).append(asked)
    topics = [
        LIST_OFFSETS.request.ListOffsetsTopic(name=name, partitions=partitions)
        for name, partitions in by_topic.items()
    ]
    return LIST_OFFSETS.request(replica_id=-1, isolation_level=int(committed), topics=topics)


def _topic(topic: MetadataResponse.MetadataResponseTopic) -> TopicDescription:
    check(topic.error_code, topic.name)
    partitions = sorted(each.partition_index for each in topic.partitions)
    name = topic.name or ""  # null only where a topic was asked for by an id that is not known
    return TopicDescription(name, topic.topic_id, partitions)
