# Written by `make stubs` from 89_streams_group_describe.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class StreamsGroupDescribeRequest(Struct):
    group_ids: list[str] = ...
    include_authorized_operations: bool = False
    include_topology_description: bool = False

class StreamsGroupDescribeRequestType(MessageType[StreamsGroupDescribeRequest]):
    __call__: type[StreamsGroupDescribeRequest]

class StreamsGroupDescribeResponse(Struct):
    throttle_time_ms: int = 0
    groups: list[StreamsGroupDescribeResponse.DescribedGroup] = ...

    class DescribedGroup(Struct):
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        topology: StreamsGroupDescribeResponse.Topology | None = None
        members: list[StreamsGroupDescribeResponse.Member] = ...
        authorized_operations: int = ...
        topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = None
        topology_description_status: int = 0
        assignor_name: str | None = None

    class Topology(Struct):
        epoch: int = 0
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = None

    class Subtopology(Struct):
        subtopology_id: str = ""
        source_topics: list[str] = ...
        repartition_sink_topics: list[str] = ...
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...

    class TopicInfo(Struct):
        name: str = ""
        partitions: int = 0
        replication_factor: int = 0
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = ...

    class Member(Struct):
        member_id: str = ""
        member_epoch: int = 0
        instance_id: str | None = None
        rack_id: str | None = None
        client_id: str = ""
        client_host: str = ""
        topology_epoch: int = 0
        process_id: str = ""
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = ...
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...
        assignment: StreamsGroupDescribeResponse.Assignment = ...
        target_assignment: StreamsGroupDescribeResponse.Assignment = ...
        is_classic: bool = False

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

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[int] = ...

    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology] = ...
        global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore] = ...

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str = ""
        nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode] = ...

    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...
        processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...

    class TopologyDescriptionNode(Struct):
        name: str = ""
        node_type: int = 0
        source_topics: list[str] = ...
        sink_topic: str | None = None
        stores: list[str] = ...
        successors: list[str] = ...

class StreamsGroupDescribeResponseType(MessageType[StreamsGroupDescribeResponse]):
    __call__: type[StreamsGroupDescribeResponse]
    DescribedGroup = StreamsGroupDescribeResponse.DescribedGroup
    Topology = StreamsGroupDescribeResponse.Topology
    Subtopology = StreamsGroupDescribeResponse.Subtopology
    TopicInfo = StreamsGroupDescribeResponse.TopicInfo
    Member = StreamsGroupDescribeResponse.Member
    Endpoint = StreamsGroupDescribeResponse.Endpoint
    KeyValue = StreamsGroupDescribeResponse.KeyValue
    TaskOffset = StreamsGroupDescribeResponse.TaskOffset
    Assignment = StreamsGroupDescribeResponse.Assignment
    TaskIds = StreamsGroupDescribeResponse.TaskIds
    TopologyDescription = StreamsGroupDescribeResponse.TopologyDescription
    TopologyDescriptionSubtopology = StreamsGroupDescribeResponse.TopologyDescriptionSubtopology
    TopologyDescriptionGlobalStore = StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore
    TopologyDescriptionNode = StreamsGroupDescribeResponse.TopologyDescriptionNode

class StreamsGroupDescribeApi(Api[StreamsGroupDescribeRequest, StreamsGroupDescribeResponse]):
    request: StreamsGroupDescribeRequestType
    response: StreamsGroupDescribeResponseType
