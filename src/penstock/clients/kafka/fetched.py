"""What a Fetch of one partition brings, and what is asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self
from uuid import UUID

from penstock.clients.kafka.connection import KafkaError
from penstock.kafka.wire import ErrorCode, api
from penstock.log.header import PREFIX_SIZE, checksum_matches, walk

if TYPE_CHECKING:
    from penstock.kafka.wire.messages import (
        FetchRequest,
        FetchResponse,
        FetchStoredRequest,
        FetchStoredResponse,
    )

_LENGTH_END: Final = 12
_NO_ID: Final = UUID(int=0)


class DamagedBatchError(KafkaError):
    """A stored batch is damaged; `next_offset` is the first one behind it, where reading goes on.

    `data` is the batch where the broker handed it out, `segment` the first offset of the file that
    holds it and its first byte there where the broker said so; None otherwise.
    """

    def __init__(
        self,
        base_offset: int,
        next_offset: int,
        segment: tuple[int, int] | None = None,
        data: bytes | None = None,
    ) -> None:
        super().__init__(
            ErrorCode.CORRUPT_MESSAGE, f"offsets {base_offset}..{next_offset - 1} are damaged"
        )
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.segment = segment
        self.data = data


class Fetched(NamedTuple):
    """Whole batches as they are stored; the first may begin before the offset that was asked."""

    batches: memoryview
    high_watermark: int
    log_start_offset: int
    last_stable_offset: int
    aborted: list[tuple[int, int]]
    """Aborted transactions of what is read, where only what is committed was asked for: the first
    offset of each, ascending, and the id of its producer.
    """

    @classmethod
    def of(cls, result: FetchResponse.PartitionData | FetchStoredResponse) -> Self:
        """Return what the answer says. Kafka cuts the last batch where the answer is full (KIP-74):
        what is left of it is left out.
        """
        records = memoryview(result.records or b"")
        whole = 0
        for position, header in walk(records):
            whole = position + header.size
        return cls(
            records[:whole],
            result.high_watermark,
            result.log_start_offset,
            result.last_stable_offset,
            [(each.first_offset, each.producer_id) for each in result.aborted_transactions or ()],
        )

    def sound(self) -> Self:
        """Return what its checksums vouch for, up to the first batch that is damaged.

        Raises DamagedBatchError where that is the first of all.
        """
        for position, header in walk(self.batches):
            batch = self.batches[position : position + header.size]
            if not checksum_matches(batch):
                if position == 0:
                    damaged = header.base_offset, header.next_offset
                    raise DamagedBatchError(*damaged, data=bytes(batch))
                return self._replace(batches=self.batches[:position])
        return self


def bytes_of_first(records: memoryview) -> int:
    """Return how large the batch is that begins here and is cut off, as far as can be told."""
    if len(records) < _LENGTH_END:
        return _LENGTH_END
    return int.from_bytes(records[8:_LENGTH_END], signed=True) + PREFIX_SIZE


def asking(
    topic: str,
    partition: int,
    offset: int,
    *,
    max_bytes: int,
    max_wait_ms: int,
    min_bytes: int,
    committed: bool,
    topic_id: UUID | None = None,
) -> FetchRequest:
    """Return the request for batches of one partition, which says name and id of the topic."""
    types = api("Fetch").request
    asked = types.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    return types(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(committed),
        topics=[types.FetchTopic(topic=topic, topic_id=topic_id or _NO_ID, partitions=[asked])],
    )


def asking_stored(
    topic: str,
    partition: int,
    offset: int,
    *,
    max_bytes: int,
    committed: bool,
    topic_id: UUID | None = None,
) -> FetchStoredRequest:
    """Return the request for batches of one partition as they are stored."""
    return api("FetchStored").request(
        topic=topic,
        topic_id=topic_id or _NO_ID,
        partition_index=partition,
        fetch_offset=offset,
        max_bytes=max_bytes,
        isolation_level=int(committed),
    )


def stored(answer: FetchStoredResponse) -> Fetched:
    """Return what is in the answer. Raises DamagedBatchError and KafkaError."""
    damage = answer.damage
    if damage is not None:
        segment = damage.segment_base_offset, damage.segment_position
        raise DamagedBatchError(damage.base_offset, damage.next_offset, segment)
    if answer.error_code != ErrorCode.NONE:
        raise KafkaError(answer.error_code)
    return Fetched.of(answer)
