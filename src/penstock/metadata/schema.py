"""The tables: one row a thing that must last and is not a message."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

SCHEMA_VERSION: Final = 1

tables: Final = MetaData()

properties: Final = Table(
    "properties",
    tables,
    Column("name", String, primary_key=True),
    Column("value", String, nullable=False),
)

namespaces: Final = Table(
    "namespaces",
    tables,
    Column("tenant", String, primary_key=True),
    Column("namespace", String, primary_key=True),
    Column("stream_id", Integer, nullable=False, unique=True),
    Column("created_at_us", BigInteger, nullable=False),
)

topics: Final = Table(
    "topics",
    tables,
    Column("id", String(32), primary_key=True),
    Column("tenant", String, nullable=False),
    Column("namespace", String, nullable=False),
    Column("topic", String, nullable=False),
    Column("kafka_name", String, nullable=False, unique=True),
    Column("iggy_topic_id", Integer, nullable=False),
    Column("partitioned", Boolean, nullable=False),
    Column("config", String, nullable=False),
    Column("created_at_us", BigInteger, nullable=False),
    UniqueConstraint("tenant", "namespace", "topic"),
    UniqueConstraint("tenant", "namespace", "iggy_topic_id"),
)

partitions: Final = Table(
    "partitions",
    tables,
    # AUTOINCREMENT: an id is never given twice, because Pulsar clients keep it as a ledger id.
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("topic_id", ForeignKey("topics.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    UniqueConstraint("topic_id", "number"),
    sqlite_autoincrement=True,
)

committed_offsets: Final = Table(
    "committed_offsets",
    tables,
    Column("kind", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("partition_id", ForeignKey("partitions.id", ondelete="CASCADE"), primary_key=True),
    Column("offset", BigInteger, nullable=False),
    Column("leader_epoch", Integer, nullable=False),
    Column("note", String, nullable=False),
    Column("committed_at_ms", BigInteger, nullable=False),
)

subscriptions: Final = Table(
    "subscriptions",
    tables,
    Column("partition_id", ForeignKey("partitions.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("mark_delete", BigInteger, nullable=False),
    Column("acknowledged", LargeBinary, nullable=False),
    Column("properties", String, nullable=False),
)

consumer_groups: Final = Table(
    "consumer_groups",
    tables,
    Column("topic_id", ForeignKey("topics.id", ondelete="CASCADE"), primary_key=True),
    Column("group_id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    UniqueConstraint("topic_id", "name"),
)
