"""Who keeps rows that take effect with a transaction: a group's offsets, a subscription's
acknowledgements.

The rows are in the database that also knows what becomes of the transaction, so the decision and
what follows from it for the participants are one SQL transaction, and a crash leaves both or
neither. Only the partitions, whose messages are in logs, hear of the decision after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.metadata.store import Change


class Participant(Protocol):
    """Keeps what producers have pending, by the ids of the producers; brings it back at a start.

    All are called for every transaction that ends, also where nothing of it is pending here.
    """

    async def settled(self, producer_id: int) -> None:
        """Return when nothing that the producer has pending is being saved.

        Nothing more can become pending meanwhile. What is pending then has its rows.
        """

    def outcome(self, producer_id: int, *, committed: bool) -> Sequence[Change]:
        """Return what becomes of the pending rows of a producer, for the decision's transaction.

        Called in the turn that puts the decision in line to be written, in which nothing else may
        be done: the write may fail, and is tried again then.
        """

    def decided(self, producer_id: int, *, committed: bool) -> None:
        """The decision is durable: what was pending is in effect, or gone."""
