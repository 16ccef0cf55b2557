"""The schemas of a node's topics. A topic's versions are numbered from 0, and none ever goes."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import limits, wall_clock
from penstock.broker.errors import (
    BrokerError,
    IncompatibleSchemaError,
    TooManySchemasError,
    UnknownSchemaError,
    UnknownTopicError,
)
from penstock.broker.schemas.compatibility import check_follows, check_reads, check_schema
from penstock.broker.schemas.schema import Schema, SchemaKind, digest
from penstock.fair_threads import FairThreads
from penstock.memory import Holding, text_bytes
from penstock.metadata.schemas import SchemaRow
from penstock.tasks import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from penstock.broker.topics.own_topic import OwnTopic
    from penstock.memory import Memory
    from penstock.metadata.schemas import SchemaRepository

_VERSION_BYTES: Final = 1_000
"""About what a version takes of memory besides its texts."""


class SchemaVersion(NamedTuple):
    """A schema that a topic has or had."""

    version: int
    schema: Schema
    digest: str
    created_at_ms: int


class _Versions:
    """Those of one topic. `changing` is held by who adds one."""

    def __init__(self) -> None:
        self.all: list[SchemaVersion] = []
        self.by_digest: dict[str, SchemaVersion] = {}
        self.changing = asyncio.Lock()

    def add(self, version: SchemaVersion) -> None:
        self.all.append(version)
        self.by_digest[version.digest] = version

    @property
    def size(self) -> int:
        return sum(_size(version.schema) for version in self.all)


class Schemas:
    """Answers from memory; a version is durable when `register` returns it."""

    def __init__(self, repository: SchemaRepository, memory: Memory) -> None:
        self._repository = repository
        self._by_topic: dict[UUID, _Versions] = {}
        self._account = memory.metadata
        self._held = Holding(memory.metadata)
        self._threads = FairThreads("schemas", (limits.SCHEMA_ORDINARY_BYTES,))

    def load(self) -> None:
        """Read the database. Blocks. Raises MetadataError."""
        for row in self._repository.all():
            schema = Schema(SchemaKind(row.kind), row.name, row.definition, row.properties)
            version = SchemaVersion(row.version, schema, row.digest, row.created_at_ms)
            self._by_topic.setdefault(row.topic_id, _Versions()).add(version)
            self._held.grow(_size(schema))

    def latest(self, topic: OwnTopic) -> SchemaVersion | None:
        """Return a topic's newest schema."""
        versions = self._by_topic.get(topic.id)
        return versions.all[-1] if versions and versions.all else None

    def get(self, topic: OwnTopic, version: int) -> SchemaVersion:
        """Return a schema by its number. Raises UnknownSchemaError."""
        versions = self._by_topic.get(topic.id)
        if versions is None or not 0 <= version < len(versions.all):
            raise UnknownSchemaError(f"{topic.name.pulsar} has no schema of version {version}")
        return versions.all[version]

    async def register(self, client: object, topic: OwnTopic, schema: Schema) -> SchemaVersion:
        """Return the version of a schema that is written with: a new one where it is no known one.

        `client` is who asks: what takes long is done for one client after the other. Raises
        IncompatibleSchemaError, TooManySchemasError, UnknownTopicError and MetadataError.
        """
        key = await self._digest(client, schema)
        versions = self._by_topic.setdefault(topic.id, _Versions())
        if (known := versions.by_digest.get(key)) is not None:
            return known
        adding = self._add(client, topic, versions, schema, key)
        return await uninterrupted(adding, "keeping a schema", refusals=BrokerError)

    async def check_reader(self, client: object, topic: OwnTopic, schema: Schema) -> None:
        """Check that a schema reads what is written with the newest one, if there is any.

        Raises IncompatibleSchemaError.
        """
        versions = self._by_topic.get(topic.id)
        sought = await self._digest(client, schema)
        if versions is not None and versions.all and sought not in versions.by_digest:
            await self._compare(client, schema, versions.all[-1].schema, check_reads)

    def forget(self, topic: OwnTopic) -> None:
        """A topic was deleted, and the database has dropped its schemas with it."""
        versions = self._by_topic.pop(topic.id, None)
        if versions is not None:
            self._held.grow(-versions.size)

    async def _add(
        self, client: object, topic: OwnTopic, versions: _Versions, schema: Schema, key: str
    ) -> SchemaVersion:
        async with versions.changing:
            if (known := versions.by_digest.get(key)) is not None:
                return known  # Somebody else came with it first.
            if versions.all:
                await self._compare(client, schema, versions.all[-1].schema, check_follows)
            made = SchemaVersion(len(versions.all), schema, key, wall_clock.now_ms())
            self._check_room(made)
            with self._counted(made):
                row = SchemaRow(topic.id, made.version, *schema, key, made.created_at_ms)
                await self._repository.insert(row)
                if self._by_topic.get(topic.id) is not versions:
                    raise UnknownTopicError(f"{topic.name.pulsar} was deleted")
            versions.add(made)
            return made

    @contextmanager
    def _counted(self, made: SchemaVersion) -> Iterator[None]:
        """Count a version from before it is written, so that those who come meanwhile see it."""
        self._held.grow(_size(made.schema))
        try:
            yield
        except BaseException:
            self._held.grow(-_size(made.schema))
            raise

    def _check_room(self, made: SchemaVersion) -> None:
        size = _size(made.schema)
        if made.version >= limits.SCHEMA_VERSIONS:
            raise TooManySchemasError(f"a topic has at most {limits.SCHEMA_VERSIONS} schemas")
        if self._held.size + size > limits.SCHEMAS_BYTES or not self._account.fits(size):
            raise TooManySchemasError("there is no memory for one more schema")

    async def _digest(self, client: object, schema: Schema) -> str:
        """Check a schema and return its digest. Raises IncompatibleSchemaError."""
        if schema.size > limits.SCHEMA_BYTES:
            raise IncompatibleSchemaError(f"a schema has at most {limits.SCHEMA_BYTES} bytes")

        def read() -> str:
            check_schema(schema)
            return digest(schema)

        if schema.size <= limits.SCHEMA_READ_AT_ONCE_BYTES:
            return read()
        return await self._threads.run(client, schema.size, read)

    async def _compare(
        self, client: object, new: Schema, last: Schema, check: Callable[[Schema, Schema], None]
    ) -> None:
        size = new.size + last.size
        if size <= limits.SCHEMA_COMPARED_AT_ONCE_BYTES:
            check(new, last)
        else:
            await self._threads.run(client, size, lambda: check(new, last))


def _size(schema: Schema) -> int:
    texts = (schema.name, *schema.properties, *schema.properties.values())
    return _VERSION_BYTES + len(schema.definition) + sum(map(text_bytes, texts))
