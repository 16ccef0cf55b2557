"""Numbers for idempotent producers, none of which is ever given twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.metadata.properties import PropertyRepository

BLOCK_SIZE: Final = 1000
"""Ids reserved by one write; what is left of a block at the end of the process is skipped."""


class ProducerIds:
    """Hands out ids from a block that the database knows to be taken."""

    def __init__(self, repository: PropertyRepository) -> None:
        self._repository = repository
        self._next = self._reserved = repository.producer_ids_reserved()
        self._reserving = asyncio.Lock()

    async def take(self) -> int:
        """Return an id that no producer has had. Raises MetadataError."""
        async with self._reserving:
            if self._next == self._reserved:
                await self._reserve(self._reserved + BLOCK_SIZE)
            self._next += 1
            return self._next - 1

    async def _reserve(self, reserved: int) -> None:
        await self._repository.reserve_producer_ids(reserved)
        self._reserved = reserved
