# Written by `make stubs` from 27_write_txn_markers.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class WriteTxnMarkersRequest(Struct):
    markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ...

    class WritableTxnMarker(Struct):
        producer_id: int = 0
        producer_epoch: int = 0
        transaction_result: bool = False
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ...
        coordinator_epoch: int = 0
        transaction_version: int = 0

    class WritableTxnMarkerTopic(Struct):
        name: str = ""
        partition_indexes: list[int] = ...

class WriteTxnMarkersRequestType(MessageType[WriteTxnMarkersRequest]):
    __call__: type[WriteTxnMarkersRequest]
    WritableTxnMarker = WriteTxnMarkersRequest.WritableTxnMarker
    WritableTxnMarkerTopic = WriteTxnMarkersRequest.WritableTxnMarkerTopic

class WriteTxnMarkersResponse(Struct):
    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...

    class WritableTxnMarkerResult(Struct):
        producer_id: int = 0
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ...

    class WritableTxnMarkerTopicResult(Struct):
        name: str = ""
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ...

    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int = 0
        error_code: int = 0

class WriteTxnMarkersResponseType(MessageType[WriteTxnMarkersResponse]):
    __call__: type[WriteTxnMarkersResponse]
    WritableTxnMarkerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult
    WritableTxnMarkerTopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
    WritableTxnMarkerPartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult

class WriteTxnMarkersApi(Api[WriteTxnMarkersRequest, WriteTxnMarkersResponse]):
    request: WriteTxnMarkersRequestType
    response: WriteTxnMarkersResponseType
