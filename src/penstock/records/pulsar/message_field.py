"""The fields of a message beside those of every record: one column a record of any encoding."""

from __future__ import annotations

from typing import Final

ENTRY: Final = 0
"""The column of its entry."""
HAS_EVENT_TIME: Final = 1
SEQUENCE_ID: Final = 2
ORDERING_START: Final = 3
ORDERING_SIZE: Final = 4
IN_BASE64: Final = 5
"""Whether the key is base64 of its bytes."""
KEY_IS_NULL: Final = 6
FIELDS: Final = 7
