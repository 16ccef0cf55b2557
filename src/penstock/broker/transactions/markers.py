"""The control batches with which partitions hear how a transaction has ended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from penstock.broker.errors import InvalidProducerEpochError, UnknownTopicError
from penstock.log.errors import LogError
from penstock.metadata.errors import MetadataError
from penstock.pace import Pace
from penstock.session import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.session import Awaited

logger = logging.getLogger(__name__)


class MarkedPartition(Protocol):
    """What is needed of a partition, as `penstock.broker.topics.partition.Partition` has it."""

    @property
    def name(self) -> str: ...

    @property
    def is_open(self) -> bool: ...

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    async def opened(self) -> None: ...

    def durable(self, offset: int) -> Awaited: ...

    def end_transaction(
        self, producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int
    ) -> int: ...


class Markers:
    """Writes them to all partitions of a transaction at once, so that they share flushes."""

    def __init__(
        self, find_partition: Callable[[int], MarkedPartition | None], coordinator_epoch: int
    ) -> None:
        self._find_partition = find_partition
        self._coordinator_epoch = coordinator_epoch

    async def safe(self, partition_ids: Iterable[int]) -> None:
        """Return once all that was written to partitions so far is safe, as their topics have it.

        What is not can be lost, and a transaction that is committed without it would be torn.
        Raises LogError.
        """
        for partition_id in partition_ids:
            partition = self._find_partition(partition_id)
            # What was written before the log was opened is as safe as it gets.
            if partition is None or not partition.is_open:
                continue
            if partition.end_offset > partition.start_offset:
                outcome = partition.durable(partition.end_offset - 1)
                await ended(outcome)
                if (error := outcome.exception()) is not None:
                    raise error

    async def write(
        self, producer_id: int, epoch: int, partition_ids: Iterable[int], *, committed: bool
    ) -> set[int]:
        """Return when they are safe, with the ids of the partitions that did not take theirs.

        Partitions that are gone need none.
        """
        pace = Pace()
        failed: set[int] = set()
        written: list[tuple[int, Awaited]] = []
        for partition_id in partition_ids:
            try:
                partition = await self._opened(partition_id)
                if partition is not None:
                    offset = partition.end_transaction(
                        producer_id,
                        epoch,
                        committed=committed,
                        coordinator_epoch=self._coordinator_epoch,
                    )
                    written.append((partition_id, partition.durable(offset)))
            except UnknownTopicError:
                continue  # It was deleted meanwhile.
            except InvalidProducerEpochError:
                continue  # It was ended there before, and its producer has gone on.
            except (LogError, MetadataError, OSError) as error:
                logger.warning("the end of a transaction was not written: %s", error)
                failed.add(partition_id)
            if pace.is_over():
                await pace.others()
        for partition_id, outcome in written:
            await ended(outcome)
            if outcome.exception() is not None:
                failed.add(partition_id)
        return failed

    async def _opened(self, partition_id: int) -> MarkedPartition | None:
        partition = self._find_partition(partition_id)
        if partition is not None and not partition.is_open:
            await partition.opened()
        return partition
