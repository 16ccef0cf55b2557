"""Stored batches of several encodings, handed out in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import records
from penstock.limits import INFLATED_BATCH_BYTES

if TYPE_CHECKING:
    from penstock.log.header import Magic
    from penstock.session import Buffer


async def translate(stored: memoryview, target: Magic) -> list[Buffer]:
    """Return the batches of `stored` in the encoding of `target`, in order, offsets kept.

    The last ones are left out where all together would take too much memory.

    Raises MalformedBatchError for a body that its own protocol could not read either.
    """
    await records.prepare()
    translated: list[Buffer] = []
    size = 0
    for part in records.convert(stored, target):
        translated.append(part)
        size += len(part)
        if size > INFLATED_BATCH_BYTES:
            break
    return translated
