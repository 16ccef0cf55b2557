"""DescribeCluster: the cluster's id and its one node.

Versions 0-2. Controllers are not offered as endpoints of their own: UNSUPPORTED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import ALL_CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.kafka.handlers.registry import Call
    from penstock.kafka.wire.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS: Final = 1


@handles(api("DescribeCluster"), 0, 2)
def describe_cluster(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    response = api("DescribeCluster").response
    if request.endpoint_type != BROKERS:
        return response(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="there are no controllers to connect to",
            endpoint_type=request.endpoint_type,
        )
    cluster = call.broker.cluster
    host, port = call.client.transport.local_address
    return response(
        cluster_id=cluster.id,
        controller_id=cluster.controller_id,
        brokers=[
            response.DescribeClusterBroker(broker_id=node_id, host=host, port=port)
            for node_id in cluster.node_ids
        ],
        cluster_authorized_operations=ALL_CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )
