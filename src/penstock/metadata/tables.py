"""The tables: one row for each thing that must last and is not a message."""

from __future__ import annotations

from typing import Final

from penstock.metadata.statements import Column, Kind, Table

PROPERTIES: Final = Table(
    "properties",
    (Column("name", Kind.TEXT), Column("value", Kind.TEXT)),
    key=("name",),
)

NAMESPACES: Final = Table(
    "namespaces",
    (
        Column("tenant", Kind.TEXT),
        Column("namespace", Kind.TEXT),
        Column("stream_id", Kind.INTEGER),
        Column("created_at_us", Kind.BIGINT),
    ),
    key=("tenant", "namespace"),
    unique=(("stream_id",),),
)

TOPICS: Final = Table(
    "topics",
    (
        Column("id", Kind.UUID),
        Column("tenant", Kind.TEXT),
        Column("namespace", Kind.TEXT),
        Column("topic", Kind.TEXT),
        Column("kafka_name", Kind.TEXT),
        Column("iggy_topic_id", Kind.INTEGER),
        Column("partitioned", Kind.BOOLEAN),
        Column("config", Kind.TEXT),
        Column("created_at_us", Kind.BIGINT),
    ),
    key=("id",),
    unique=(
        ("tenant", "namespace", "topic"),
        ("tenant", "namespace", "iggy_topic_id"),
        ("kafka_name",),
    ),
)

PARTITIONS: Final = Table(
    "partitions",
    (
        # An id is never given twice, because Pulsar clients keep it as a ledger id.
        Column("id", Kind.IDENTITY),
        Column("topic_id", Kind.UUID, references="topics"),
        Column("number", Kind.INTEGER),
    ),
    key=("id",),
    unique=(("topic_id", "number"),),
)

DELETED_TOPICS: Final = Table(
    "deleted_topics",
    # Those whose folders have yet to be removed.
    (Column("id", Kind.UUID),),
    key=("id",),
)

DELETED_PARTITIONS: Final = Table(
    "deleted_partitions",
    # The same of topics that are still there.
    (
        Column("topic_id", Kind.UUID, references="topics"),
        Column("id", Kind.INTEGER),
        Column("number", Kind.INTEGER),
    ),
    key=("topic_id", "id"),
)

COMMITTED_OFFSETS: Final = Table(
    "committed_offsets",
    (
        Column("kind", Kind.TEXT),
        Column("name", Kind.TEXT),
        Column("partition_id", Kind.INTEGER, references="partitions"),
        Column("offset", Kind.BIGINT),
        Column("leader_epoch", Kind.INTEGER),
        Column("note", Kind.TEXT),
        Column("committed_at_ms", Kind.BIGINT),
    ),
    key=("kind", "name", "partition_id"),
    index="partition_id",
)

SUBSCRIPTIONS: Final = Table(
    "subscriptions",
    (
        Column("partition_id", Kind.INTEGER, references="partitions"),
        Column("name", Kind.TEXT),
        Column("mark_delete", Kind.BIGINT),
        Column("properties", Kind.TEXT),
    ),
    key=("partition_id", "name"),
)

CURSOR_BLOCKS: Final = Table(
    "cursor_blocks",
    (
        Column("partition_id", Kind.INTEGER, references="partitions"),
        Column("name", Kind.TEXT),
        Column("number", Kind.BIGINT),
        Column("bits", Kind.BYTES),
    ),
    key=("partition_id", "name", "number"),
)

PENDING_ACKNOWLEDGEMENTS: Final = Table(
    "pending_acknowledgements",
    # Of transactions: such of a committed one stay until the cursor has them.
    (
        Column("partition_id", Kind.INTEGER, references="partitions"),
        Column("name", Kind.TEXT),
        Column("producer_id", Kind.BIGINT),
        Column("number", Kind.BIGINT),
        Column("bits", Kind.BYTES),
        Column("committed", Kind.BOOLEAN),
    ),
    key=("partition_id", "name", "producer_id", "number"),
)

EXCLUSIVE_EPOCHS: Final = Table(
    "exclusive_epochs",
    (
        Column("partition_id", Kind.INTEGER, references="partitions"),
        Column("epoch", Kind.BIGINT),
    ),
    key=("partition_id",),
)

CONSUMER_GROUPS: Final = Table(
    "consumer_groups",
    (
        Column("topic_id", Kind.UUID, references="topics"),
        Column("group_id", Kind.INTEGER),
        Column("name", Kind.TEXT),
    ),
    key=("topic_id", "group_id"),
    unique=(("topic_id", "name"),),
)

CLASSIC_GROUPS: Final = Table(
    "classic_groups",
    (
        Column("id", Kind.TEXT),
        Column("generation", Kind.INTEGER),
        Column("protocol_type", Kind.TEXT),
        Column("protocol", Kind.TEXT),
        Column("leader", Kind.TEXT),
    ),
    key=("id",),
)

CLASSIC_MEMBERS: Final = Table(
    "classic_members",
    (
        Column("group_id", Kind.TEXT, references="classic_groups"),
        Column("member_id", Kind.TEXT),
        # Empty where the member is not static.
        Column("instance_id", Kind.TEXT),
        Column("client_id", Kind.TEXT),
        Column("client_host", Kind.TEXT),
        Column("session_timeout_ms", Kind.INTEGER),
        Column("rebalance_timeout_ms", Kind.INTEGER),
        Column("protocols", Kind.BYTES),
        Column("assignment", Kind.BYTES),
    ),
    key=("group_id", "member_id"),
)

QUOTAS: Final = Table(
    "quotas",
    (
        Column("user_name", Kind.TEXT),
        Column("client_id", Kind.TEXT),
        Column("quota", Kind.TEXT),
        # As text: what is read is what was written.
        Column("a_second", Kind.TEXT),
    ),
    key=("user_name", "client_id", "quota"),
)

SCHEMAS: Final = Table(
    "schemas",
    (
        Column("topic_id", Kind.UUID, references="topics"),
        Column("version", Kind.INTEGER),
        Column("kind", Kind.TEXT),
        Column("name", Kind.TEXT),
        Column("definition", Kind.BYTES),
        Column("properties", Kind.TEXT),
        # Schemas that say the same, however they are written, have the same one.
        Column("digest", Kind.TEXT),
        Column("created_at_ms", Kind.BIGINT),
    ),
    key=("topic_id", "version"),
)

TRANSACTIONS: Final = Table(
    "transactions",
    (
        Column("producer_id", Kind.BIGINT),
        # Empty where the producer is there for one transaction only.
        Column("transactional_id", Kind.TEXT),
        Column("previous_producer_id", Kind.BIGINT),
        Column("epoch", Kind.INTEGER),
        Column("last_epoch", Kind.INTEGER),
        Column("timeout_ms", Kind.INTEGER),
        Column("state", Kind.TEXT),
        Column("started_at_ms", Kind.BIGINT),
        Column("changed_at_ms", Kind.BIGINT),
    ),
    key=("producer_id",),
)

TRANSACTION_PARTITIONS: Final = Table(
    "transaction_partitions",
    (
        Column("producer_id", Kind.BIGINT),
        Column("partition_id", Kind.INTEGER, references="partitions"),
    ),
    key=("producer_id", "partition_id"),
    index="partition_id",
)

TRANSACTION_PARTICIPANTS: Final = Table(
    "transaction_participants",
    (Column("producer_id", Kind.BIGINT), Column("name", Kind.TEXT)),
    key=("producer_id", "name"),
)

PENDING_OFFSETS: Final = Table(
    "pending_offsets",
    # Those of transactions that are open, until they are committed offsets or gone.
    (
        Column("producer_id", Kind.BIGINT),
        Column("kind", Kind.TEXT),
        Column("name", Kind.TEXT),
        Column("partition_id", Kind.INTEGER, references="partitions"),
        Column("offset", Kind.BIGINT),
        Column("leader_epoch", Kind.INTEGER),
        Column("note", Kind.TEXT),
        Column("committed_at_ms", Kind.BIGINT),
    ),
    key=("producer_id", "kind", "name", "partition_id"),
    index="partition_id",
)

WRITER_EPOCHS: Final = Table(
    "writer_epochs",
    (
        Column("writer", Kind.TEXT),
        Column("epoch", Kind.BIGINT),
        Column("changed_at_ms", Kind.BIGINT),
        Column("fingerprint", Kind.TEXT),
    ),
    key=("writer",),
)

TABLES: Final = (
    PROPERTIES,
    NAMESPACES,
    TOPICS,
    PARTITIONS,
    DELETED_TOPICS,
    DELETED_PARTITIONS,
    COMMITTED_OFFSETS,
    SUBSCRIPTIONS,
    CURSOR_BLOCKS,
    PENDING_ACKNOWLEDGEMENTS,
    EXCLUSIVE_EPOCHS,
    CONSUMER_GROUPS,
    CLASSIC_GROUPS,
    CLASSIC_MEMBERS,
    QUOTAS,
    SCHEMAS,
    TRANSACTIONS,
    TRANSACTION_PARTITIONS,
    TRANSACTION_PARTICIPANTS,
    PENDING_OFFSETS,
    WRITER_EPOCHS,
)
"""All of them, each after those that it references."""
