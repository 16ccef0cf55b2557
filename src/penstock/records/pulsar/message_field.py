"""The fields of a message beside those of every record: one column a record of any encoding."""

from __future__ import annotations

from typing import Final

IN_BASE64: Final = 0
"""Whether the key is base64 of its bytes."""
FIELDS_OF_KEYS: Final = 1
"""How many of them there are where no headers are wanted."""
ENTRY: Final = 1
"""The column of its entry."""
HAS_EVENT_TIME: Final = 2
SEQUENCE_ID: Final = 3
ORDERING_START: Final = 4
ORDERING_SIZE: Final = 5
KEY_IS_NULL: Final = 6
FIELDS: Final = 7
