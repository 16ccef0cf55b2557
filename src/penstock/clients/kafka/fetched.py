"""What a Fetch of one partition brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from penstock.kafka.wire.messages import FetchResponse


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
    def of(cls, result: FetchResponse.PartitionData) -> Self:
        """Return what the answer says."""
        return cls(
            memoryview(result.records or b""),
            result.high_watermark,
            result.log_start_offset,
            result.last_stable_offset,
            [(each.first_offset, each.producer_id) for each in result.aborted_transactions or ()],
        )
