# Written by `make stubs` from consumer_protocol_assignment.schema.

from penstock.kafka.wire.apis import MessageType
from penstock.kafka.wire.structs import Struct

class ConsumerProtocolAssignment(Struct):
    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = ...
    user_data: bytes | None = None

    class TopicPartition(Struct):
        topic: str = ""
        partitions: list[int] = ...

class ConsumerProtocolAssignmentType(MessageType[ConsumerProtocolAssignment]):
    __call__: type[ConsumerProtocolAssignment]
    TopicPartition = ConsumerProtocolAssignment.TopicPartition
