"""The schemas of topics, in versions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from penstock.metadata.store import Change
from penstock.metadata.tables import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.metadata.store import MetadataStore

_SELECT: Final = SCHEMAS.select(order_by=["topic_id", "version"])
_INSERT: Final = SCHEMAS.insert()


class SchemaRow(NamedTuple):
    """One version of a topic's schema, from 0. `digest` is the same for what says the same."""

    topic_id: UUID
    version: int
    kind: str
    name: str
    definition: bytes
    properties: Mapping[str, str]
    digest: str
    created_at_ms: int


class SchemaRepository:
    """Rows of `schemas`. The database deletes them with their topic."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[SchemaRow]:
        """Read all of them, a topic's in their order; blocks. Raises MetadataError."""
        return [_row(*values) for values in self._store.read(_SELECT)]

    async def insert(self, row: SchemaRow) -> None:
        """Store a version. Raises MetadataError."""
        values = {
            **row._asdict(),
            "topic_id": row.topic_id.hex,
            "properties": json.dumps(dict(row.properties)),
        }
        await self._store.write(Change(_INSERT, [values]))


def _row(topic_id: str, version: int, kind: str, name: str, *rest: object) -> SchemaRow:
    definition, properties, digest, created_at_ms = rest
    return SchemaRow(
        UUID(hex=topic_id),
        version,
        kind,
        name,
        bytes(definition),  # type: ignore[call-overload]  # a column of bytes
        json.loads(str(properties)),
        str(digest),
        int(str(created_at_ms)),
    )
