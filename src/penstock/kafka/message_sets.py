"""Message sets of clients of before 2017: what they send becomes a batch, what they read is made of
batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import records
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.limits import CONVERTED_AT_ONCE_BYTES, DECODED_ROWS
from penstock.log.header import HEADER_SIZE, Magic, walk
from penstock.records import MessageSetMagic
from penstock.records.message_sets import layout
from penstock.records.message_sets.faults import Fault, MessageSetError
from penstock.requests.validation import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.topics.partition import Partition
    from penstock.broker.transactions.isolation import Isolation
    from penstock.records import Encoding
    from penstock.requests.call import Client
    from penstock.session import Buffer

_FIRST_FETCH_VERSION_WITH_TIMES: Final = 2
_FIRST_FETCH_VERSION_WITH_BATCHES: Final = 4
_COPIES: Final = 3
"""Of what is inflated: as it is read, as records of a batch, and compressed again."""
_ROW_BYTES: Final = 100
"""Of the table of messages, for each."""
_CODES: Final = {
    Fault.CORRUPT: ErrorCode.CORRUPT_MESSAGE,
    Fault.INVALID: ErrorCode.INVALID_RECORD,
    Fault.COMPRESSION: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    Fault.TIMESTAMP: ErrorCode.INVALID_TIMESTAMP,
    Fault.TOO_LARGE: ErrorCode.MESSAGE_TOO_LARGE,
}


def is_message_set(produced: Buffer) -> bool:
    """Whether this is no batch of magic 2, which Produce 0-2 may bring too."""
    view = memoryview(produced)
    return len(view) <= layout.MAGIC_AT or view[layout.MAGIC_AT] != Magic.KAFKA


async def to_batch(message_set: Buffer, client: Client) -> Buffer:
    """Return the batch that a producer's message set becomes.

    What is large or compressed becomes it in a thread, and what that takes is reserved before.
    Raises RequestError.
    """
    await records.prepare()
    if _is_small(memoryview(message_set)):
        return _to_batch(message_set)

    def size() -> int:
        inflated = records.message_set_bytes(message_set)
        rows = min(inflated // layout.SMALLEST, DECODED_ROWS)
        return _COPIES * inflated + _ROW_BYTES * rows

    return await in_thread(client, len(message_set), size, lambda: _to_batch(message_set))


def _is_small(message_set: memoryview) -> bool:
    """Whether the conversion is work for a moment only."""
    if len(message_set) > CONVERTED_AT_ONCE_BYTES:
        return False
    is_whole = len(message_set) >= layout.SMALLEST
    return not (is_whole and message_set[layout.ATTRIBUTES_AT] & layout.COMPRESSION)


def _to_batch(message_set: Buffer) -> Buffer:
    from penstock.records.message_sets.decode import batch_of_messages  # noqa: PLC0415  # numpy

    try:
        return batch_of_messages(message_set)
    except MessageSetError as error:
        raise RequestError(_CODES[error.fault], str(error)) from error


def encoding_of(fetch_version: int) -> Encoding:
    """Return what a consumer that asks in this version of Fetch can read."""
    if fetch_version >= _FIRST_FETCH_VERSION_WITH_BATCHES:
        return Magic.KAFKA
    if fetch_version >= _FIRST_FETCH_VERSION_WITH_TIMES:
        return MessageSetMagic.V1
    return MessageSetMagic.V0


async def read_messages(
    partition: Partition,
    offset: int,
    max_bytes: int,
    magic: MessageSetMagic,
    isolation: Isolation,
) -> list[Buffer]:
    """Return sets of whole messages, the first of which has `offset` or the next one after it.

    At least one message is returned whatever its size. Nothing where `offset` is the readable end.
    Raises what Partition.read raises.
    """
    while True:
        stretches = await partition.read(offset, max_bytes, magic, isolation)
        messages = list(_messages(stretches, offset))
        if messages or not stretches:
            return messages
        # Nothing in them says anything to a client, and a set can't say how far it spans.
        *_, (_, last) = walk(stretches[-1])
        offset = last.next_offset


def _messages(stretches: list[Buffer], offset: int) -> Iterator[Buffer]:
    from penstock.records.columns import as_bytes  # noqa: PLC0415  # numpy
    from penstock.records.message_sets.encode import find_message  # noqa: PLC0415

    for stretch in stretches:
        view = memoryview(stretch)
        for position, header in walk(view):
            messages = view[position + HEADER_SIZE : position + header.size]
            if header.base_offset < offset:
                messages = messages[find_message(as_bytes(messages), offset) :]
            if messages:
                yield messages


def cut(messages: list[Buffer], max_bytes: int, most: int | None) -> list[Buffer]:
    """Return what has room in `max_bytes`; the last message may be cut off, which clients expect.

    The first one comes whole, unless `most` is given and it is larger than that (KIP-74): a client
    that gets less than one message asks for more bytes, or gives up.
    """
    if not messages:
        return []
    first = memoryview(messages[0])
    size = int.from_bytes(first[layout.SIZE_AT : layout.PREFIX], "big")
    left = max(max_bytes, layout.PREFIX + size)
    if most is not None:
        left = min(left, max(most, 0))
    parts: list[Buffer] = []
    for part in messages:
        if left <= 0:
            break
        parts.append(memoryview(part)[:left])
        left -= len(parts[-1])
    return parts
