"""A stream's progress as that of a consumer group, so that tools which watch lag see it.

Spark asks for a next batch only when the one before is committed, and says where that ended. It
asks so too when nothing is left, and of a stream that ends by itself; what it reports as committed
to a source is a batch behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.pipeline.clusters.opening import OpenCluster
    from penstock.pipeline.source.offsets import Offsets


class GroupProgress:
    """Commits offsets as a group's, once each."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._committed: Offsets = {}

    def reached(self, offsets: Offsets, cluster: OpenCluster) -> None:
        """Commit how far all rows are done. Raises SourceError."""
        moved = {
            source: offset
            for source, offset in offsets.items()
            if self._committed.get(source) != offset
        }
        if moved:
            cluster.commit(self._group, moved)
            self._committed |= moved
