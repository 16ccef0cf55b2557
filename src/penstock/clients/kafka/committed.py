"""Leaving out what was aborted, as a consumer of committed messages does by itself (KIP-98)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from penstock.log.header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL, walk
from penstock.records.kafka.control import is_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.clients.kafka.fetched import Fetched
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

_NOTHING: Final = -1


class CommittedBatches:
    """Of one partition, whose batches come in the order of the log, none left out.

    `fetch` reads what is committed from an offset on, for the aborted transactions that the broker
    names with it. It is called where the first batch of a transaction comes, and again behind what
    it read. All batches lie below the last stable offset.
    """

    def __init__(self, fetch: Callable[[int], Fetched]) -> None:
        self._fetch = fetch
        self._named: deque[tuple[int, int]] = deque()
        """Aborted transactions that begin further on: first offset and producer id."""
        self._named_up_to = _NOTHING
        self._aborting: set[int] = set()
        """Producers whose messages are of an aborted transaction, up to its marker."""

    def keep(self, batches: Buffer) -> Iterator[memoryview]:
        """Yield runs of those of the batches that were committed, or are of no transaction."""
        view = memoryview(batches)
        start = 0
        for position, header in walk(view):
            following = position + header.size
            if self._keeps(header, view[position:following]):
                continue
            if start < position:
                yield view[start:position]
            start = following
        if start < len(view):
            yield view[start:]

    def forget(self) -> None:
        """Batches are missing here, ends of transactions perhaps among them: ask anew."""
        self._aborting.clear()
        self._named.clear()
        self._named_up_to = _NOTHING

    def _keeps(self, header: BatchHeader, batch: memoryview) -> bool:
        if not header.attributes & (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL):
            return True
        if header.attributes & ATTRIBUTE_CONTROL:
            self._begin_up_to(header.last_offset)
            if not is_commit(batch):
                self._aborting.discard(header.producer_id)
            return False
        if header.last_offset > self._named_up_to:
            self._ask(header.base_offset)
        self._begin_up_to(header.last_offset)
        return header.producer_id not in self._aborting

    def _begin_up_to(self, offset: int) -> None:
        while self._named and self._named[0][0] <= offset:
            self._aborting.add(self._named.popleft()[1])

    def _ask(self, offset: int) -> None:
        fetched = self._fetch(offset)
        self._aborting.clear()
        # Apache Kafka names them in the order in which they ended.
        self._named = deque(sorted(fetched.aborted))
        # Named are those of what was fetched; what lies behind may be of others.
        ends = (header.last_offset for _, header in walk(fetched.batches))
        self._named_up_to = max(ends, default=_NOTHING)
