"""ListPartitionReassignments: what moves between nodes at the moment (KIP-455).

Version 0. Nothing ever does, for there is one replica; as in Kafka, what does not move is left out,
be it there or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )


@handles(api("ListPartitionReassignments"), 0, 0)
def list_partition_reassignments(
    _request: ListPartitionReassignmentsRequest, _call: Call
) -> ListPartitionReassignmentsResponse:
    return api("ListPartitionReassignments").response(error_message=None, topics=[])
