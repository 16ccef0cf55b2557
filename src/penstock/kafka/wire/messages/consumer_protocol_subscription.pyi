# Written by `make stubs` from consumer_protocol_subscription.schema.

from penstock.kafka.wire.apis import MessageType
from penstock.kafka.wire.structs import Struct

class ConsumerProtocolSubscription(Struct):
    topics: list[str] = ...
    user_data: bytes | None = None
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = ...
    generation_id: int = -1
    rack_id: str | None = None

    class TopicPartition(Struct):
        topic: str = ""
        partitions: list[int] = ...

class ConsumerProtocolSubscriptionType(MessageType[ConsumerProtocolSubscription]):
    __call__: type[ConsumerProtocolSubscription]
    TopicPartition = ConsumerProtocolSubscription.TopicPartition
