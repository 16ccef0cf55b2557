"""Where a message of a set has its fields, which are big-endian; magic 1 has a timestamp more."""

from __future__ import annotations

from typing import Final

SIZE_AT: Final = 8
PREFIX: Final = 12
"""Bytes that the size does not count: the offset and the size itself."""
CRC_AT: Final = 12
MAGIC_AT: Final = 16
"""First byte that the checksum covers; it covers all the rest of the message."""
ATTRIBUTES_AT: Final = 17
TIMESTAMP_AT: Final = 18
TIMESTAMP_SIZE: Final = 8
SMALLEST: Final = 26
"""Bytes of a message of magic 0 without key and value."""

COMPRESSION: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
"""Of magic 1 only."""
