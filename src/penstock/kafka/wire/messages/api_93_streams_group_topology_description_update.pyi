# Written by `make stubs` from 93_streams_group_topology_description_update.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class StreamsGroupTopologyDescriptionUpdateRequest(Struct):
    group_id: str = ""
    member_id: str = ""
    topology_epoch: int = 0
    topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = ...

    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology] = ...
        global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore] = ...

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str = ""
        nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode] = ...

    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...
        processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...

    class TopologyDescriptionNode(Struct):
        name: str = ""
        node_type: int = 0
        source_topics: list[str] = ...
        sink_topic: str | None = None
        stores: list[str] = ...
        successors: list[str] = ...

class StreamsGroupTopologyDescriptionUpdateRequestType(MessageType[StreamsGroupTopologyDescriptionUpdateRequest]):
    __call__: type[StreamsGroupTopologyDescriptionUpdateRequest]
    TopologyDescription = StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription
    TopologyDescriptionSubtopology = StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology
    TopologyDescriptionGlobalStore = StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore
    TopologyDescriptionNode = StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode

class StreamsGroupTopologyDescriptionUpdateResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None

class StreamsGroupTopologyDescriptionUpdateResponseType(MessageType[StreamsGroupTopologyDescriptionUpdateResponse]):
    __call__: type[StreamsGroupTopologyDescriptionUpdateResponse]

class StreamsGroupTopologyDescriptionUpdateApi(Api[StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse]):
    request: StreamsGroupTopologyDescriptionUpdateRequestType
    response: StreamsGroupTopologyDescriptionUpdateResponseType
