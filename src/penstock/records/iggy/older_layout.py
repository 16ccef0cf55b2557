"""Where everything lies in a message of Iggy's older dialects."""

from __future__ import annotations

from typing import Final

from penstock.records.iggy import layout
from penstock.records.iggy.batch import HEADER_KEY, HEADER_KIND, HEADER_VALUE, SOUND
from penstock.records.kernels.arguments import BytesIn
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import load_half

EARLY: Final = 0
"""The form of 2023: the id, the user headers, the payload. Keys of user headers have no kind."""
WITHOUT_RESERVE: Final = 56
"""The form of 0.5 and 0.6: a header of 56 bytes, the payload, user headers as in 2023."""
WITH_RESERVE: Final = 64
"""The form of 0.7 and 0.8: a header of 64 bytes, the payload, user headers as today."""

EARLY_SIZE: Final = 24
"""Bytes of an early message, as it is sent, besides its user headers and its payload."""
POLLED_SIZE: Final = 45
"""The same of an early message as it is polled."""

INDEX_SIZE: Final = 16
"""Bytes for each message of a send, in front of them all, from 0.5 on."""
ID_AT: Final = 8
OFFSET_AT: Final = 24
TIMESTAMP_AT: Final = 32
ORIGIN_AT: Final = 40
HEADERS_AT: Final = 48
PAYLOAD_AT: Final = 52
RESERVE_AT: Final = 56

STRING: Final = 2
"""The kind of a key, where its dialect says none."""


@helper
def entry_end(data: BytesIn, position: int) -> int:
    """Return the end of the user header at `position`, whose key has no kind and which is sound."""
    position += 4 + load_half(data, position)
    return position + 5 + load_half(data, position + 1)


@helper
def entry_fault(data: BytesIn, position: int, end: int) -> int:
    """Return what is wrong with the user header at `position`, whose key has no kind, or SOUND."""
    if end - position < 4:
        return HEADER_KEY
    size = load_half(data, position)
    position += 4
    if size < 1 or size > layout.LONGEST_FIELD or size > end - position:
        return HEADER_KEY
    position += size
    if end - position < 5:
        return HEADER_VALUE
    if data[position] < 1 or data[position] > layout.LAST_KIND:
        return HEADER_KIND
    size = load_half(data, position + 1)
    if size < 1 or size > layout.LONGEST_FIELD or size > end - position - 5:
        return HEADER_VALUE
    return SOUND
