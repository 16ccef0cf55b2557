"""Message ids as offsets, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log.header import HEADER_SIZE, Magic
from penstock.pulsar.wire.message_ids import EARLIEST, LATEST
from penstock.pulsar.wire.pulsar_api_pb2 import MessageIdData
from penstock.records.pulsar.entry import read_entry

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition


async def position_at(partition: Partition, message_id: MessageIdData) -> int:
    """Return the offset of the entry that a message id names, or the nearest end of the log.

    Inclusive: what a reader or a seek at this id begins with. Clients drop what they don't want.
    """
    ledger, entry = message_id.ledgerId, message_id.entryId
    if EARLIEST in {ledger, entry} or ledger < partition.id:
        return partition.start_offset
    if ledger == LATEST or ledger > partition.id or entry >= partition.readable_end():
        return partition.readable_end()
    header = await partition.batch_at(max(entry, partition.start_offset))
    return partition.readable_end() if header is None else header.base_offset


async def position_at_time(partition: Partition, timestamp_ms: int) -> int:
    """Return where the first entry of that time or later begins, else the end."""
    found = await partition.at_time(timestamp_ms)
    return partition.readable_end() if found is None else found


async def entry_before(partition: Partition, position: int) -> int:
    """Return the entry id that is all acknowledged when `position` is the next offset to read."""
    if position <= partition.start_offset:
        return position - 1 if position else EARLIEST
    header = await partition.batch_at(position - 1)
    if header is None:
        return position - 1
    if header.next_offset > position:
        return await entry_before(partition, header.base_offset)
    return header.base_offset


async def last_message_id(partition: Partition) -> MessageIdData:
    """Return the id of the last message; both numbers are the highest while there is none."""
    index = partition.index if partition.topic.partitioned else -1
    end = partition.readable_end()
    if end == 0:
        return MessageIdData(ledgerId=EARLIEST, entryId=EARLIEST, partition=index)
    last = MessageIdData(ledgerId=partition.id, entryId=end - 1, partition=index)
    header = await partition.batch_at(end - 1) if partition.start_offset < end else None
    if header is not None:
        last.entryId = header.base_offset
        # A batch of one is a batch, which only its own metadata tells.
        (batch,) = await partition.read(header.base_offset, 1, Magic.PULSAR)
        if read_entry(memoryview(batch)[HEADER_SIZE:]).is_batch:
            last.batch_index = header.record_count - 1
    return last
