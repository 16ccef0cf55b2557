"""Numbers for idempotent producers, none of which is ever given twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert

from penstock.metadata.schema import properties

if TYPE_CHECKING:
    from penstock.metadata.store import MetadataStore

BLOCK_SIZE: Final = 1000
"""Ids reserved by one write; what is left of a block at the end of the process is skipped."""

_NAME: Final = "producer_ids_reserved"


class ProducerIds:
    """Hands out ids from a block that the database knows to be taken."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        rows = store.query(select(properties.c.value).where(properties.c.name == _NAME))
        self._next = self._reserved = int(rows[0].value) if rows else 0
        self._reserving = asyncio.Lock()

    async def take(self) -> int:
        """Return an id that no producer has had. Raises MetadataError."""
        async with self._reserving:
            if self._next == self._reserved:
                await self._reserve(self._reserved + BLOCK_SIZE)
            self._next += 1
            return self._next - 1

    async def _reserve(self, reserved: int) -> None:
        row = insert(properties).values(name=_NAME, value=str(reserved))
        await self._store.write(
            row.on_conflict_do_update(index_elements=["name"], set_={"value": row.excluded.value})
        )
        self._reserved = reserved
