"""The fields of the tables that records are decoded into.

A table is an array of int64 with one field a row and one record (header, batch) a column, so a
kernel takes it as one argument and each field is a contiguous array. A size of -1 is null.
"""

from __future__ import annotations

from typing import Final

# Of a record. Positions are in the buffer of keys and values.
OFFSET: Final = 0
TIMESTAMP: Final = 1
"""Microseconds since 1970; -1 where the producer gave none."""
KEY_START: Final = 2
KEY_SIZE: Final = 3
VALUE_START: Final = 4
VALUE_SIZE: Final = 5
HEADER_COUNT: Final = 6
BLOCK_START: Final = 7
"""Where its own encoding has the headers: of a Pulsar message, its metadata."""
BLOCK_END: Final = 8
RECORD_FIELDS: Final = 9

# Of a header. Positions are in the buffer of the headers.
NAME_START: Final = 0
NAME_SIZE: Final = 1
CONTENT_START: Final = 2
CONTENT_SIZE: Final = 3
KINDS: Final = 4
"""See `header_kinds`."""
HEADER_FIELDS: Final = 5

# Of a batch. Positions are in the buffer of keys and values; the body is there uncompressed.
POSITION: Final = 0
MAGIC: Final = 1
BASE_OFFSET: Final = 2
LAST_DELTA: Final = 3
ATTRIBUTES: Final = 4
BASE_TIMESTAMP: Final = 5
MAX_TIMESTAMP: Final = 6
COUNT: Final = 7
"""Messages, as the stored header counts them."""
BODY_START: Final = 8
BODY_END: Final = 9
FIRST_RECORD: Final = 10
RECORDS: Final = 11
"""How many columns of the table of records are this batch's: none of a control batch."""
BATCH_FIELDS: Final = 12
