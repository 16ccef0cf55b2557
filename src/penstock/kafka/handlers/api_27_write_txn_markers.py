"""WriteTxnMarkers: have partitions take the end of a transaction from another broker.

Versions 0-2. The coordinator writes them itself, and nobody else may: every partition is
CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse


@handles(api("WriteTxnMarkers"), 0, 2)
async def write_txn_markers(
    request: WriteTxnMarkersRequest, _call: Call
) -> WriteTxnMarkersResponse:
    response = api("WriteTxnMarkers").response
    pace = Pace()

    def of_partition(
        index: int,
    ) -> WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult:
        return response.WritableTxnMarkerPartitionResult(
            partition_index=index, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )

    async def of_topic(
        topic: WriteTxnMarkersRequest.WritableTxnMarkerTopic,
    ) -> WriteTxnMarkersResponse.WritableTxnMarkerTopicResult:
        partitions = await pace.each(topic.partition_indexes, of_partition)
        return response.WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions)

    async def of_marker(
        marker: WriteTxnMarkersRequest.WritableTxnMarker,
    ) -> WriteTxnMarkersResponse.WritableTxnMarkerResult:
        topics = await pace.each_awaited(marker.topics, of_topic)
        return response.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)

    return response(markers=await pace.each_awaited(request.markers, of_marker))
