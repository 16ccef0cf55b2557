"""The fields of an entry in the table that decoding fills: one column a batch of any encoding."""

from __future__ import annotations

from typing import Final

METADATA_START: Final = 0
METADATA_END: Final = 1
PAYLOAD_START: Final = 2
PAYLOAD_END: Final = 3
CODEC: Final = 4
INFLATED_SIZE: Final = 5
IS_BATCH: Final = 6
IS_ENCRYPTED: Final = 7
PUBLISHED: Final = 8
"""The publish time in milliseconds since 1970."""
PRODUCER_START: Final = 9
PRODUCER_SIZE: Final = 10
OTHER_FIELDS: Final = 11
"""How many fields its metadata has that no other table holds."""
FIELDS: Final = 12
