"""Namespaces of tenants, which Iggy calls streams."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.errors import NamespaceExistsError, UnknownNamespaceError
from penstock.broker.topics.names import NamespaceName
from penstock.metadata.namespaces import NamespaceRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.metadata.namespaces import NamespaceRepository
    from penstock.metadata.topics import TopicUpdate


class Namespace(NamedTuple):
    """`stream_id` is Iggy's number: the lowest free one from 0 when it came into being."""

    name: NamespaceName
    stream_id: int
    created_at_us: int


class Namespaces:
    """The registry. Look-ups are answered from memory; changes are durable when they return."""

    def __init__(self, repository: NamespaceRepository) -> None:
        self._repository = repository
        self._by_name: dict[NamespaceName, Namespace] = {}
        for row in repository.all():
            name = NamespaceName(row.tenant, row.namespace)
            self._by_name[name] = Namespace(name, row.stream_id, row.created_at_us)

    def get(self, name: NamespaceName) -> Namespace | None:
        return self._by_name.get(name)

    def by_stream_id(self, stream_id: int) -> Namespace | None:
        for namespace in self._by_name.values():
            if namespace.stream_id == stream_id:
                return namespace
        return None

    def all(self) -> list[Namespace]:
        return sorted(self._by_name.values(), key=lambda namespace: namespace.stream_id)

    async def create(self, name: NamespaceName) -> Namespace:
        """Create a namespace. Raises NamespaceExistsError and MetadataError."""
        if name in self._by_name:
            raise NamespaceExistsError(f"stream {name.iggy} exists")
        taken = {namespace.stream_id for namespace in self._by_name.values()}
        stream_id = next(number for number in itertools.count() if number not in taken)
        namespace = Namespace(name, stream_id, time.time_ns() // 1000)
        # Remembered before the write, so that nobody else takes the name or the number meanwhile.
        self._by_name[name] = namespace
        try:
            await self._repository.insert(NamespaceRow(*name, stream_id, namespace.created_at_us))
        except BaseException:
            del self._by_name[name]
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
        self._by_name[new] = namespace._replace(name=new)
        try:
            await self._repository.rename(namespace.stream_id, *new, topics)
        except BaseException:
            del self._by_name[new]
            raise
        self._by_name.pop(old, None)

    async def delete(self, name: NamespaceName) -> None:
        """Delete a namespace that has no topics any more. Raises UnknownNamespaceError."""
        if name not in self._by_name:
            raise UnknownNamespaceError(f"no stream {name.iggy}")
        await self._repository.delete(*name)
        self._by_name.pop(name, None)
