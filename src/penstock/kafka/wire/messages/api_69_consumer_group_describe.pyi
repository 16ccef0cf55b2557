# Written by `make stubs` from 69_consumer_group_describe.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ConsumerGroupDescribeRequest(Struct):
    group_ids: list[str] = ...
    include_authorized_operations: bool = False

class ConsumerGroupDescribeRequestType(MessageType[ConsumerGroupDescribeRequest]):
    __call__: type[ConsumerGroupDescribeRequest]

class ConsumerGroupDescribeResponse(Struct):
    throttle_time_ms: int = 0
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = ...

    class DescribedGroup(Struct):
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        assignor_name: str = ""
        members: list[ConsumerGroupDescribeResponse.Member] = ...
        authorized_operations: int = ...

    class Member(Struct):
        member_id: str = ""
        instance_id: str | None = None
        rack_id: str | None = None
        member_epoch: int = 0
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: list[str] = ...
        subscribed_topic_regex: str | None = None
        assignment: ConsumerGroupDescribeResponse.Assignment = ...
        target_assignment: ConsumerGroupDescribeResponse.Assignment = ...
        member_type: int = -1

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: UUID = ...
        topic_name: str = ""
        partitions: list[int] = ...

class ConsumerGroupDescribeResponseType(MessageType[ConsumerGroupDescribeResponse]):
    __call__: type[ConsumerGroupDescribeResponse]
    DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup
    Member = ConsumerGroupDescribeResponse.Member
    Assignment = ConsumerGroupDescribeResponse.Assignment
    TopicPartitions = ConsumerGroupDescribeResponse.TopicPartitions

class ConsumerGroupDescribeApi(Api[ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse]):
    request: ConsumerGroupDescribeRequestType
    response: ConsumerGroupDescribeResponseType
