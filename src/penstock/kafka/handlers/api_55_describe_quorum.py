"""DescribeQuorum: who votes on metadata, as a Kafka that is its own controller shows it.

Versions 0-2. The one voter is this node, and it has never anything to catch up with. Anything but
the one partition of the metadata is UNKNOWN_TOPIC_OR_PARTITION.

Deviation: metadata lies in a database and not in a log, so its offsets are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import wall_clock
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse

METADATA_TOPIC: Final = "__cluster_metadata"


@handles(api("DescribeQuorum"), 0, 2)
async def describe_quorum(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    response = api("DescribeQuorum").response
    pace = Pace()

    async def of_topic(asked: DescribeQuorumRequest.TopicData) -> DescribeQuorumResponse.TopicData:
        partitions = await pace.each(
            asked.partitions,
            lambda each: _partition(asked.topic_name, each.partition_index, call),
        )
        return response.TopicData(topic_name=asked.topic_name, partitions=partitions)

    host, port = call.client.transport.local_address
    return response(
        error_message=None,
        topics=await pace.each_awaited(request.topics, of_topic),
        nodes=[
            response.Node(
                node_id=node_id,
                listeners=[response.Listener(name="PLAINTEXT", host=host, port=port)],
            )
            for node_id in call.broker.cluster.node_ids
        ],
    )


def _partition(topic: str, index: int, call: Call) -> DescribeQuorumResponse.PartitionData:
    response = api("DescribeQuorum").response
    if (topic, index) != (METADATA_TOPIC, 0):
        return response.PartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"the quorum has one partition, {METADATA_TOPIC} 0",
            current_voters=[],
            observers=[],
        )
    leader = call.broker.cluster.this_node
    now = wall_clock.now_ms()
    voter = response.ReplicaState(
        replica_id=leader.node_id,
        last_fetch_timestamp=now,
        last_caught_up_timestamp=now,
    )
    return response.PartitionData(
        partition_index=index,
        error_message=None,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        current_voters=[voter],
        observers=[],
    )
