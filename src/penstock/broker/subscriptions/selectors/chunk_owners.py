"""Which consumer of a shared subscription gets the chunks of a message that came in several.

Only a consumer that has them all can put them together (PIP-37).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import limits
from penstock.log.batches import StoredBatch
from penstock.log.header import ATTRIBUTE_CHUNK
from penstock.records.errors import MalformedBatchError
from penstock.records.pulsar.chunks import is_chunk

if TYPE_CHECKING:
    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.records.pulsar.chunks import ChunkInfo


class ChunkOwners:
    """The owners of messages that are under way."""

    def __init__(self) -> None:
        self._owners: dict[str, Consumer] = {}

    def owner(self, entry: AnyEntry, chosen: Consumer) -> Consumer:
        """Return who gets an entry: the owner of its message, or else the one who was chosen."""
        chunk = _chunk(entry)
        if chunk is None:
            return chosen
        uuid, number, total, _ = chunk
        owner = self._owners.pop(uuid, chosen)
        if number < total - 1:
            self._owners[uuid] = owner
            if len(self._owners) > limits.UNFINISHED_CHUNKED_MESSAGES:
                del self._owners[next(iter(self._owners))]
        return owner

    def forget(self, consumer: Consumer) -> None:
        """A consumer is gone; what it had begins anew with somebody else."""
        self._owners = {uuid: c for uuid, c in self._owners.items() if c is not consumer}


def _chunk(entry: AnyEntry) -> ChunkInfo | None:
    if isinstance(entry, StoredBatch) or not entry.header.attributes & ATTRIBUTE_CHUNK:
        return None
    try:
        return is_chunk(entry.batch)
    except MalformedBatchError:
        return None  # What can't be read is for the consumer to refuse.
