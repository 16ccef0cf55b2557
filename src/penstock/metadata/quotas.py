"""Quotas: how much of something certain clients may have a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import QUOTAS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.store import MetadataStore

_SELECT: Final = QUOTAS.select()
_UPSERT: Final = QUOTAS.upsert()
_DELETE: Final = QUOTAS.delete(where=["user_name", "client_id", "quota"])


class QuotaRow(NamedTuple):
    """One quota of those who match a user's name and a client's id.

    Either is '' where everybody matches, '*' where those match that have no quota of their own, and
    else the name behind '='.
    """

    user_name: str
    client_id: str
    quota: str
    a_second: str


class QuotaRepository:
    """Rows of `quotas`."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[QuotaRow]:
        """Read all of them; blocks. Raises MetadataError."""
        return [QuotaRow(*row) for row in self._store.read(_SELECT)]

    async def change(self, kept: Iterable[QuotaRow], dropped: Iterable[QuotaRow]) -> None:
        """Store quotas and delete others, all or none. Raises MetadataError."""
        await self._store.write(
            Change(_UPSERT, [row._asdict() for row in kept]),
            Change(_DELETE, [_key(row) for row in dropped]),
        )


def _key(row: QuotaRow) -> dict[str, str]:
    return {"user_name": row.user_name, "client_id": row.client_id, "quota": row.quota}
