# Written by `make stubs` from 77_share_group_describe.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ShareGroupDescribeRequest(Struct):
    group_ids: list[str] = ...
    include_authorized_operations: bool = False

class ShareGroupDescribeRequestType(MessageType[ShareGroupDescribeRequest]):
    __call__: type[ShareGroupDescribeRequest]

class ShareGroupDescribeResponse(Struct):
    throttle_time_ms: int = 0
    groups: list[ShareGroupDescribeResponse.DescribedGroup] = ...

    class DescribedGroup(Struct):
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        assignor_name: str = ""
        members: list[ShareGroupDescribeResponse.Member] = ...
        authorized_operations: int = ...

    class Member(Struct):
        member_id: str = ""
        rack_id: str | None = None
        member_epoch: int = 0
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: list[str] = ...
        assignment: ShareGroupDescribeResponse.Assignment = ...

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: UUID = ...
        topic_name: str = ""
        partitions: list[int] = ...

class ShareGroupDescribeResponseType(MessageType[ShareGroupDescribeResponse]):
    __call__: type[ShareGroupDescribeResponse]
    DescribedGroup = ShareGroupDescribeResponse.DescribedGroup
    Member = ShareGroupDescribeResponse.Member
    Assignment = ShareGroupDescribeResponse.Assignment
    TopicPartitions = ShareGroupDescribeResponse.TopicPartitions

class ShareGroupDescribeApi(Api[ShareGroupDescribeRequest, ShareGroupDescribeResponse]):
    request: ShareGroupDescribeRequestType
    response: ShareGroupDescribeResponseType
