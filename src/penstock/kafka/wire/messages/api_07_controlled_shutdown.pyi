# Written by `make stubs` from 07_controlled_shutdown.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ControlledShutdownRequest(Struct):
    broker_id: int = 0
    broker_epoch: int = -1

class ControlledShutdownRequestType(MessageType[ControlledShutdownRequest]):
    __call__: type[ControlledShutdownRequest]

class ControlledShutdownResponse(Struct):
    error_code: int = 0
    remaining_partitions: list[ControlledShutdownResponse.RemainingPartition] = ...

    class RemainingPartition(Struct):
        topic_name: str = ""
        partition_index: int = 0

class ControlledShutdownResponseType(MessageType[ControlledShutdownResponse]):
    __call__: type[ControlledShutdownResponse]
    RemainingPartition = ControlledShutdownResponse.RemainingPartition

class ControlledShutdownApi(Api[ControlledShutdownRequest, ControlledShutdownResponse]):
    request: ControlledShutdownRequestType
    response: ControlledShutdownResponseType
