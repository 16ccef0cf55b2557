"""Which consumer of a shared subscription gets the chunks of a message that came in several.

Only a consumer that has them all can put them together (PIP-37).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.log.batches import StoredBatch
from penstock.log.header import ATTRIBUTE_CHUNK
from penstock.memory import Holding
from penstock.records.errors import MalformedBatchError
from penstock.records.pulsar.chunks import is_chunk

if TYPE_CHECKING:
    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.memory import Account
    from penstock.records.pulsar.chunks import ChunkInfo


_ID_BYTES: Final = 16
_OWNER_BYTES: Final = 200
"""What an owner takes with its message's id."""


class ChunkOwners:
    """The owners of messages that are under way.

    Producers choose the ids of messages, of any length: what is kept of one has a fixed size.
    """

    def __init__(self, account: Account) -> None:
        self._owners: dict[bytes, Consumer] = {}
        self._held = Holding(account)

    def owner(self, entry: AnyEntry, chosen: Consumer) -> Consumer:
        """Return who gets an entry: the owner of its message, or else the one who was chosen."""
        chunk = _chunk(entry)
        if chunk is None:
            return chosen
        uuid, number, total, _ = chunk
        message = blake2b(uuid.encode(), digest_size=_ID_BYTES).digest()
        owner = self._owners.pop(message, chosen)
        if number < total - 1:
            self._owners[message] = owner
            if len(self._owners) > limits.UNFINISHED_CHUNKED_MESSAGES:
                del self._owners[next(iter(self._owners))]
        self._held.follow(len(self._owners) * _OWNER_BYTES)
        return owner

    def forget(self, consumer: Consumer) -> None:
        """A consumer is gone; what it had begins anew with somebody else."""
        self._owners = {
            message: owner for message, owner in self._owners.items() if owner is not consumer
        }
        self._held.follow(len(self._owners) * _OWNER_BYTES)


def _chunk(entry: AnyEntry) -> ChunkInfo | None:
    if isinstance(entry, StoredBatch) or not entry.header.attributes & ATTRIBUTE_CHUNK:
        return None
    try:
        return is_chunk(entry.batch)
    except MalformedBatchError:
        return None  # What can't be read is for the consumer to refuse.
