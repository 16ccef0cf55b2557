"""Names of files that say which topic their rows are of."""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import quote

FILE_NAME_BYTES: Final = 255
"""Of one name, as Linux' file systems take it."""

_DIGEST_SIZE: Final = 16


def topic_in_name(topic: str, around: int) -> str:
    """Return what stands for a topic in a file's name that has `around` other bytes.

    Of other protocols than Kafka's a topic's name has slashes. Where there is no room for all of
    it, its beginning and a digest of the whole stand for it.
    """
    quoted = quote(topic, safe="")
    room = FILE_NAME_BYTES - around
    if len(quoted) <= room:
        return quoted
    digest = hashlib.sha256(topic.encode()).hexdigest()[:_DIGEST_SIZE]
    return f"{quoted[: room - _DIGEST_SIZE - 1]}-{digest}"
