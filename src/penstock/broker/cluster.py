"""Who leads a partition or coordinates a key, and at which epoch.

One node owns everything today. Whoever names a node or an epoch asks here, so that the answer may
become another one without anybody else's noticing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition


class Owner(NamedTuple):
    """The node that answers for something. Each takeover has a higher epoch than those before."""

    node_id: int
    epoch: int


class Cluster:
    """The nodes, as this one knows them. `id` is the data's: 22 URL-safe characters."""

    def __init__(self, cluster_id: str, this_node: Owner) -> None:
        self.id = cluster_id
        self.this_node = this_node

    @property
    def node_ids(self) -> list[int]:
        """All nodes that clients may turn to."""
        return [self.this_node.node_id]

    @property
    def controller_id(self) -> int:
        """The node that changes what belongs to all of them, such as the list of topics."""
        return self.this_node.node_id

    def leader_of(self, partition: Partition) -> Owner:
        """Return who reads and writes a partition."""
        return Owner(self.this_node.node_id, partition.leader_epoch)

    def coordinator_of(self, key: str) -> Owner:
        """Return who keeps what belongs to a key, such as a group's id."""
        del key
        return self.this_node
