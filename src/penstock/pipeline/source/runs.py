"""What the headers of a run of stored batches say, looked at by one compiled loop.

Batches may be as small as one message, and then a loop in Python over them would cost more than
their records do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.header import (
    ATTRIBUTE_CHUNK,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    walk,
)
from penstock.records import MalformedBatchError, field
from penstock.records.batch_headers import read_batch_headers
from penstock.records.columns import as_bytes

if TYPE_CHECKING:
    from penstock.records.columns import Numbers
    from penstock.session import Buffer

_NOT_PLAIN: Final = ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL


def next_offset(run: Buffer, position: int) -> int:
    """Return the offset behind these batches, `position` where that is further on."""
    headers = _headers(run)
    if headers is not None:
        ends = headers[field.BASE_OFFSET] + headers[field.LAST_DELTA] + 1
        return max(position, int(ends.max(initial=position)))
    for _, header in walk(run):
        position = max(position, header.next_offset)
    return position


def may_hold_transactions(run: Buffer) -> bool:
    """Whether some of these batches may be of a transaction, or end one."""
    return _may_have(run, _NOT_PLAIN)


def may_hold_chunks(run: Buffer) -> bool:
    """Whether some of these batches may be a part of a larger message."""
    return _may_have(run, ATTRIBUTE_CHUNK)


def _may_have(run: Buffer, attributes: int) -> bool:
    headers = _headers(run)
    return headers is None or bool((headers[field.ATTRIBUTES] & attributes).any())


def _headers(run: Buffer) -> Numbers | None:
    try:
        return read_batch_headers(as_bytes(run))
    except MalformedBatchError:
        return None  # Whoever decodes it says which one.
