# Written by `make stubs` from 60_describe_cluster.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeClusterRequest(Struct):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False

class DescribeClusterRequestType(MessageType[DescribeClusterRequest]):
    __call__: type[DescribeClusterRequest]

class DescribeClusterResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterResponse.DescribeClusterBroker] = ...
    cluster_authorized_operations: int = ...

    class DescribeClusterBroker(Struct):
        broker_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None
        is_fenced: bool = False

class DescribeClusterResponseType(MessageType[DescribeClusterResponse]):
    __call__: type[DescribeClusterResponse]
    DescribeClusterBroker = DescribeClusterResponse.DescribeClusterBroker

class DescribeClusterApi(Api[DescribeClusterRequest, DescribeClusterResponse]):
    request: DescribeClusterRequestType
    response: DescribeClusterResponseType
