"""Message ids as offsets, and back.

A damaged batch is an entry like others, for consumers get one in its place: it can be named and
acknowledged. Only the last message of a topic is one that can be read.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from penstock.limits import PULSAR_HIDDEN_BATCHES, PULSAR_LOOK_UPS_TOGETHER
from penstock.log.errors import CorruptBatchError, OffsetOutOfRangeError
from penstock.log.header import HEADER_SIZE, Magic, read_header
from penstock.pulsar.wire.message_ids import EARLIEST, LATEST
from penstock.pulsar.wire.pulsar_api_pb2 import MessageIdData
from penstock.records.errors import MalformedBatchError
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
    extent = await _extent_at(partition, max(entry, partition.start_offset))
    return partition.readable_end() if extent is None else max(extent[0], partition.start_offset)


async def position_at_time(partition: Partition, timestamp_ms: int) -> int:
    """Return where the first entry of that time or later begins, else the end."""
    found = await partition.at_time(timestamp_ms)
    return partition.readable_end() if found is None else found


async def entry_before(partition: Partition, position: int) -> int:
    """Return the entry id that is all acknowledged when `position` is the next offset to read."""
    if position <= partition.start_offset:
        return position - 1 if position else EARLIEST
    extent = await _extent_at(partition, position - 1)
    if extent is None:
        return position - 1
    base_offset, next_offset = extent
    if next_offset > position:
        return await entry_before(partition, base_offset)
    return base_offset


async def last_message_id(partition: Partition, *, compacted: bool = False) -> MessageIdData:
    """Return the id of the last message that is not damaged, and committed, and, where it is the
    last of the `compacted` view, not left out there.

    Both numbers are the highest while there is none, or none any more: a reader would wait for it.
    Where it is damaged, it is the last offset.
    """
    index = partition.index if partition.topic.partitioned else -1
    none = MessageIdData(ledgerId=EARLIEST, entryId=EARLIEST, partition=index)
    end = partition.readable_end()
    if end == 0:
        return none
    last = MessageIdData(ledgerId=partition.id, entryId=end - 1, partition=index)
    damaged = hidden = 0
    while damaged < PULSAR_LOOK_UPS_TOGETHER and hidden < PULSAR_HIDDEN_BATCHES:
        if compacted:
            end = partition.compaction.view.end_of_what_is_left(end)
        if end <= partition.start_offset:
            return last if damaged else none
        extent = await _extent_at(partition, end - 1)
        if extent is None:
            break
        found = await _name_last_message(partition, extent[0], end, last)
        if found is _Found.MESSAGE:
            break
        damaged += found is _Found.DAMAGE
        hidden += found is _Found.NOTHING
        end = extent[0]
    return last


class _Found(Enum):
    MESSAGE = auto()
    NOTHING = auto()
    """It was aborted, compacted away or given up, or says how a transaction ended."""
    DAMAGE = auto()


async def _name_last_message(
    partition: Partition, offset: int, end: int, last: MessageIdData
) -> _Found:
    """Set `last` to the last message below `end` of the batch at `offset`, if consumers get one
    there.
    """
    try:
        (batch,), _, next_offset = await partition.read_on(offset, 1, Magic.PULSAR)
        committed = partition.committed_in(offset, next_offset)
    except (CorruptBatchError, MalformedBatchError):
        return _Found.DAMAGE
    except OffsetOutOfRangeError:
        return _Found.NOTHING
    header = read_header(batch)
    if header.record_count == 0 or header.base_offset > offset or committed.hides(header):
        return _Found.NOTHING
    last.entryId = offset
    # A batch of one is a batch, which only its own metadata tells.
    if read_entry(memoryview(batch)[HEADER_SIZE:]).is_batch:
        last.batch_index = min(header.record_count, end - offset) - 1
    return _Found.MESSAGE


async def _extent_at(partition: Partition, offset: int) -> tuple[int, int] | None:
    """Return base offset and next offset of the entry that contains `offset`; None at the end."""
    try:
        return await partition.entry_at(offset, Magic.PULSAR)
    except CorruptBatchError as damage:
        return damage.base_offset, damage.next_offset
    except OffsetOutOfRangeError:
        return offset, offset + 1  # It was given up this moment.
