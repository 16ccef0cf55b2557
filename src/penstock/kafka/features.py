"""The features of a cluster, as a Kafka that is its own controller shows them (KIP-584).

A client does what a finalized feature stands for, so only those are here that are in effect.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Feature(NamedTuple):
    """The levels that there are of a feature, both ends in them, and the one that is in effect."""

    name: str
    first: int
    last: int
    finalized: int


METADATA_VERSION: Final = Feature("metadata.version", first=7, last=30, finalized=30)
"""Kafka 4.3, the one whose requests are spoken. Tools show it; nothing follows from it."""

TRANSACTION_VERSION: Final = Feature("transaction.version", first=0, last=2, finalized=2)
"""With 2, clients have the producer's epoch go up with each transaction, and partitions take part
by what is produced (KIP-890)."""

FEATURES: Final = {each.name: each for each in (METADATA_VERSION, TRANSACTION_VERSION)}
EPOCH: Final = 0
"""How often a finalized feature was changed."""
