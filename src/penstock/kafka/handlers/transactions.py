"""What the handlers of transactional requests have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import ProducerFencedError
from penstock.kafka.errors import Refusal, RequestError, refusal
from penstock.kafka.wire import ErrorCode

if TYPE_CHECKING:
    from penstock.broker.broker import Broker

GROUP_PREFIX: Final = "kafka-group:"
"""What stands before a group's id where it has a part in a transaction."""


def check_name(transactional_id: str) -> None:
    """Refuse an empty transactional id."""
    if not transactional_id:
        raise RequestError(ErrorCode.INVALID_REQUEST, "an empty transactional id")


def refusal_in(error: BaseException, version: int, first_with_fenced: int) -> Refusal:
    """Return what to tell a client of a version; older ones know no PRODUCER_FENCED (KIP-588)."""
    if isinstance(error, ProducerFencedError) and version < first_with_fenced:
        return Refusal(ErrorCode.INVALID_PRODUCER_EPOCH, str(error))
    return refusal(error)


def partition_names(broker: Broker, partition_ids: frozenset[int]) -> dict[str, list[int]]:
    """Return the numbers of partitions by their topics' names, but for those that are gone."""
    names: dict[str, list[int]] = {}
    for partition_id in partition_ids:
        partition = broker.topics.partition(partition_id)
        if partition is not None:
            names.setdefault(partition.topic.name.kafka, []).append(partition.index)
    return names
