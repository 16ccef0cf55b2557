# Written by `make stubs` from 88_streams_group_heartbeat.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class StreamsGroupHeartbeatRequest(Struct):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: StreamsGroupHeartbeatRequest.Topology | None = None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None
    shutdown_application: bool = False

    class Topology(Struct):
        epoch: int = 0
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = ...

    class Subtopology(Struct):
        subtopology_id: str = ""
        source_topics: list[str] = ...
        source_topic_regex: list[str] = ...
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...
        repartition_sink_topics: list[str] = ...
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = ...

    class TopicInfo(Struct):
        name: str = ""
        partitions: int = 0
        replication_factor: int = 0
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = ...

    class CopartitionGroup(Struct):
        source_topics: list[int] = ...
        source_topic_regex: list[int] = ...
        repartition_source_topics: list[int] = ...

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[int] = ...

    class Endpoint(Struct):
        host: str = ""
        port: int = 0

    class KeyValue(Struct):
        key: str = ""
        value: str = ""

    class TaskOffset(Struct):
        subtopology_id: str = ""
        partition: int = 0
        offset: int = 0

class StreamsGroupHeartbeatRequestType(MessageType[StreamsGroupHeartbeatRequest]):
    __call__: type[StreamsGroupHeartbeatRequest]
    Topology = StreamsGroupHeartbeatRequest.Topology
    Subtopology = StreamsGroupHeartbeatRequest.Subtopology
    TopicInfo = StreamsGroupHeartbeatRequest.TopicInfo
    CopartitionGroup = StreamsGroupHeartbeatRequest.CopartitionGroup
    TaskIds = StreamsGroupHeartbeatRequest.TaskIds
    Endpoint = StreamsGroupHeartbeatRequest.Endpoint
    KeyValue = StreamsGroupHeartbeatRequest.KeyValue
    TaskOffset = StreamsGroupHeartbeatRequest.TaskOffset

class StreamsGroupHeartbeatResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag_legacy: int = 0
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1
    status: list[StreamsGroupHeartbeatResponse.Status] | None = ...
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None
    topology_description_required: bool = False
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = None

    class Status(Struct):
        status_code: int = 0
        status_detail: str = ""

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[int] = ...

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ...
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...

    class Endpoint(Struct):
        host: str = ""
        port: int = 0

    class TopicPartition(Struct):
        topic: str = ""
        partitions: list[int] = ...

class StreamsGroupHeartbeatResponseType(MessageType[StreamsGroupHeartbeatResponse]):
    __call__: type[StreamsGroupHeartbeatResponse]
    Status = StreamsGroupHeartbeatResponse.Status
    TaskIds = StreamsGroupHeartbeatResponse.TaskIds
    EndpointToPartitions = StreamsGroupHeartbeatResponse.EndpointToPartitions
    Endpoint = StreamsGroupHeartbeatResponse.Endpoint
    TopicPartition = StreamsGroupHeartbeatResponse.TopicPartition

class StreamsGroupHeartbeatApi(Api[StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse]):
    request: StreamsGroupHeartbeatRequestType
    response: StreamsGroupHeartbeatResponseType
