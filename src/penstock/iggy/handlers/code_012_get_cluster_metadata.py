"""GET_CLUSTER_METADATA: where the servers are; there is one, and it leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


_UNUSED_PORT: Final = 0
_LEADER: Final = 0
_HEALTHY: Final = 0


@handles(Command.GET_CLUSTER_METADATA, requests.Empty)
async def get_cluster_metadata(
    context: Context, _request: requests.Empty
) -> replies.ClusterMetadata:
    """Name this server under the address that the client reached it by."""
    host, port = context.client.transport.local_address
    node = replies.ClusterNode(
        name=f"penstock-{context.broker.cluster.this_node.node_id}",
        address=host,
        tcp_port=port,
        quic_port=_UNUSED_PORT,
        http_port=_UNUSED_PORT,
        websocket_port=_UNUSED_PORT,
        role=_LEADER,
        status=_HEALTHY,
    )
    return replies.ClusterMetadata("penstock", [node])
