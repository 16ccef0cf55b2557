"""The headers in which a record carries what its encoding can't express (docs/interop.md)."""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.records.columns import Bytes

PREFIX: Final = b"penstock."

KEY: Final = b"penstock.key"
"""Iggy: the record's key."""
TOMBSTONE: Final = b"penstock.tombstone"
"""Iggy: the value is null, and the payload therefore empty."""
TIMESTAMP: Final = b"penstock.timestamp"
"""Microseconds since 1970 in decimal, where the record's own time is coarser; -1 is none."""
PACKED: Final = b"penstock.header."
"""Then an index: base64 of a name, and behind a colon base64 of a value that is not null."""
BASE64: Final = b"penstock.base64."
"""Then a name: base64 of a value that is no text."""

IGGY_ID: Final = b"penstock.iggy.id"
IGGY_KINDS: Final = b"penstock.iggy.kinds"
PULSAR: Final = b"penstock.pulsar."
PULSAR_PRODUCER: Final = b"penstock.pulsar.producer"
PULSAR_SEQUENCE: Final = b"penstock.pulsar.sequence"
PULSAR_PUBLISH_TIME: Final = b"penstock.pulsar.publish-time"
PULSAR_NULL_KEY: Final = b"penstock.pulsar.null-key"
PULSAR_ORDERING_KEY: Final = b"penstock.pulsar.ordering-key"
PULSAR_METADATA: Final = b"penstock.pulsar.metadata"

CONVERTED_PRODUCER: Final = b"penstock"
"""The producer's name in a Pulsar entry whose records no Pulsar producer sent."""


def constant(text: bytes) -> Bytes:
    """Return `text` as kernels compare it: an array that becomes part of them."""
    return np.frombuffer(text, np.uint8)
