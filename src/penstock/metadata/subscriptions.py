"""Durable subscriptions and their cursors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, overload

from penstock.metadata.store import Change
from penstock.metadata.tables import CURSOR_BLOCKS, PENDING_ACKNOWLEDGEMENTS, SUBSCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.database import Parameters
    from penstock.metadata.store import MetadataStore

_SELECT: Final = SUBSCRIPTIONS.select()
_SELECT_BLOCKS: Final = CURSOR_BLOCKS.select()
_INSERT: Final = SUBSCRIPTIONS.insert()
# No upserts: the cursor of a partition that was deleted meanwhile changes no row.
_SAVE: Final = SUBSCRIPTIONS.update("mark_delete", where=["partition_id", "name"])
_SAVE_BLOCK: Final = CURSOR_BLOCKS.upsert_beside(SUBSCRIPTIONS)
_DELETE: Final = SUBSCRIPTIONS.delete(where=["partition_id", "name"])
_DELETE_BLOCK: Final = CURSOR_BLOCKS.delete(where=["partition_id", "name", "number"])
_DELETE_PASSED: Final = CURSOR_BLOCKS.delete(where=["partition_id", "name"], below="number")
_DELETE_BLOCKS: Final = CURSOR_BLOCKS.delete(where=["partition_id", "name"])
_DELETE_PENDING: Final = PENDING_ACKNOWLEDGEMENTS.delete(where=["partition_id", "name"])
_BLOCK_BYTES: Final = 128

Blocks: TypeAlias = Mapping[int, int]
"""Blocks of 1,024 offsets by their numbers; bit i stands for the i-th offset after the first."""


class CursorRow(NamedTuple):
    """How far a subscription is: all before `mark_delete` is acknowledged.

    `blocks` are those of acknowledged offsets after it that changed; one that is gone has no bits.
    Before they are stored, all that are stored before the number `from_number` go.
    """

    partition_id: int
    name: str
    mark_delete: int
    from_number: int
    blocks: Sequence[tuple[int, int]]


class SubscriptionRow(NamedTuple):
    """A subscription without its blocks; `properties` are kept as JSON."""

    partition_id: int
    name: str
    mark_delete: int
    properties: Mapping[str, str]


class SubscriptionRepository:
    """Rows of `subscriptions` and `cursor_blocks`; the database deletes them with a partition.

    With a subscription go its rows of `pending_acknowledgements`.
    """

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[SubscriptionRow]:
        """Read all of them; blocks. Raises MetadataError."""
        rows = self._store.read(_SELECT)
        return [
            SubscriptionRow(partition_id, name, mark_delete, json.loads(properties))
            for partition_id, name, mark_delete, properties in rows
        ]

    def blocks(self) -> Mapping[tuple[int, str], Blocks]:
        """Read those of all cursors, by partition id and name; blocks. Raises MetadataError."""
        found: dict[tuple[int, str], dict[int, int]] = {}
        for partition_id, name, number, bits in self._store.read(_SELECT_BLOCKS):
            of_cursor = found.setdefault((partition_id, name), {})
            of_cursor[number] = int.from_bytes(bits, "little")
        return found

    async def insert(self, subscription: SubscriptionRow) -> None:
        """Store a new subscription. Raises MetadataError."""
        properties = json.dumps(dict(subscription.properties))
        row = {**subscription._asdict(), "properties": properties}
        await self._store.write(Change(_INSERT, [row]))

    async def save(self, cursors: Iterable[CursorRow]) -> None:
        """Store where cursors are and what changed of them, all or none. Raises MetadataError."""
        changes: list[Change] = []
        for partition_id, name, mark_delete, from_number, blocks in cursors:
            key = {"partition_id": partition_id, "name": name}
            changes.append(Change(_SAVE, [{**key, "mark_delete": mark_delete}]))
            changes.append(Change(_DELETE_PASSED, [{**key, "number": from_number}]))
            saved = [block for block in blocks if block[1]]
            gone = [block for block in blocks if not block[1]]
            changes += [
                Change(_SAVE_BLOCK, _BlockRows(key, saved)),
                Change(_DELETE_BLOCK, _BlockRows(key, gone)),
            ]
        await self._store.write(*changes)

    async def delete(self, partition_id: int, name: str) -> None:
        """Delete a subscription. Raises MetadataError."""
        key = [{"partition_id": partition_id, "name": name}]
        statements = (_DELETE, _DELETE_BLOCKS, _DELETE_PENDING)
        await self._store.write(*(Change(statement, key) for statement in statements))


class _BlockRows(Sequence["Parameters"]):
    """Parameters that are made where they are written, which is in a thread: there may be many."""

    def __init__(self, key: Parameters, blocks: Sequence[tuple[int, int]]) -> None:
        self._key = key
        self._blocks = blocks

    def __len__(self) -> int:
        return len(self._blocks)

    @overload
    def __getitem__(self, index: int) -> Parameters: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Parameters]: ...
    def __getitem__(self, index: int | slice) -> Parameters | Sequence[Parameters]:
        if isinstance(index, slice):
            return _BlockRows(self._key, self._blocks[index])
        number, bits = self._blocks[index]
        return {**self._key, "number": number, "bits": bits.to_bytes(_BLOCK_BYTES, "little")}
