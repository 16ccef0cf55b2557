"""Stored batches of several encodings, handed out in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import records

if TYPE_CHECKING:
    from penstock.log.header import Magic
    from penstock.session import Buffer


async def translate(stored: memoryview, target: Magic) -> list[Buffer]:
    """Return the batches of `stored` in the encoding of `target`, in order, offsets kept.

    Raises MalformedBatchError for a body that its own protocol could not read either.
    """
    await records.prepare()
    return records.convert(stored, target)
