"""Namespaces of tenants, which Iggy calls streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock import wall_clock
from penstock.broker.creations import namespace_creations
from penstock.broker.errors import (
    BrokerError,
    NamespaceExistsError,
    NamespaceNumberTakenError,
    UnknownNamespaceError,
)
from penstock.broker.topics.names import NamespaceName
from penstock.broker.topics.numbers import LowestFree
from penstock.metadata.namespaces import NamespaceRow
from penstock.tasks import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.metadata.namespaces import NamespaceRepository
    from penstock.metadata.topics import TopicUpdate


class Namespace(NamedTuple):
    """`stream_id` is Iggy's number: the lowest free one from 0, if its client chose none."""

    name: NamespaceName
    stream_id: int
    created_at_us: int


class Namespaces:
    """The registry. Look-ups are answered from memory; changes are durable when they return."""

    def __init__(self, repository: NamespaceRepository) -> None:
        self._repository = repository
        self._by_name: dict[NamespaceName, Namespace] = {}
        self._by_stream_id: dict[int, Namespace] = {}
        for row in repository.all():
            name = NamespaceName(row.tenant, row.namespace)
            self._remember(Namespace(name, row.stream_id, row.created_at_us))
        self._free_ids = LowestFree(self._by_stream_id)
        self._creations = namespace_creations()

    def get(self, name: NamespaceName) -> Namespace | None:
        return self._by_name.get(name)

    def by_stream_id(self, stream_id: int) -> Namespace | None:
        return self._by_stream_id.get(stream_id)

    def all(self) -> list[Namespace]:
        return sorted(self._by_name.values(), key=lambda namespace: namespace.stream_id)

    async def create(
        self, name: NamespaceName, address: str | None = None, stream_id: int | None = None
    ) -> Namespace:
        """Create a namespace; `address` is that of the client that asks for it by itself.

        It gets the number `stream_id`, or the lowest free one. Raises NamespaceExistsError,
        NamespaceNumberTakenError, NamespacesThrottledError and MetadataError.
        """
        if stream_id in self._by_stream_id:
            raise NamespaceNumberTakenError(f"a stream has the number {stream_id}")
        if name in self._by_name:
            raise NamespaceExistsError(f"stream {name.iggy} exists")
        self._creations.take(address)
        creating = self._create(name, self._number(stream_id))
        return await uninterrupted(creating, "creating a namespace", refusals=BrokerError)

    def _number(self, chosen: int | None) -> int:
        if chosen is None:
            return self._free_ids.take()
        was_free = self._free_ids.claim(chosen)
        assert was_free, "no stream has the number"
        return chosen

    async def _create(self, name: NamespaceName, stream_id: int) -> Namespace:
        namespace = Namespace(name, stream_id, wall_clock.now_us())
        # Remembered before the write, so that nobody else takes the name meanwhile.
        self._remember(namespace)
        try:
            row = NamespaceRow(*name, namespace.stream_id, namespace.created_at_us)
            await self._repository.insert(row)
        except BaseException:
            self._forget(namespace)
            raise
        return namespace

    async def get_or_create(self, name: NamespaceName) -> Namespace:
        return self._by_name.get(name) or await self.create(name)

    async def rename(
        self,
        old: NamespaceName,
        new: NamespaceName,
        topics: Sequence[TopicUpdate],
    ) -> None:
        """Give a namespace a new name, in one transaction with what that means for its topics.

        Raises UnknownNamespaceError and NamespaceExistsError.
        """
        namespace = self._by_name.get(old)
        if namespace is None:
            raise UnknownNamespaceError(f"no stream {old.iggy}")
        if new in self._by_name:
            raise NamespaceExistsError(f"stream {new.iggy} exists")
        # Remembered before the write, so that nobody else takes the name meanwhile.
        renamed = self._by_name[new] = namespace._replace(name=new)
        try:
            await self._repository.rename(namespace.stream_id, *new, topics)
        except BaseException:
            del self._by_name[new]
            raise
        del self._by_name[old]
        self._by_stream_id[renamed.stream_id] = renamed

    async def delete(self, name: NamespaceName) -> None:
        """Delete a namespace that has no topics any more. Raises UnknownNamespaceError."""
        namespace = self._by_name.get(name)
        if namespace is None:
            raise UnknownNamespaceError(f"no stream {name.iggy}")
        await self._repository.delete(*name)
        self._forget(namespace)

    def _remember(self, namespace: Namespace) -> None:
        self._by_name[namespace.name] = namespace
        self._by_stream_id[namespace.stream_id] = namespace

    def _forget(self, namespace: Namespace) -> None:
        if self._by_stream_id.pop(namespace.stream_id, None) is not None:
            del self._by_name[namespace.name]
            self._free_ids.give_back(namespace.stream_id)
