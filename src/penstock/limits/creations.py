"""The limits of what clients create that lasts."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import Limit

PARTITIONS_CREATED_AT_ONCE: Final = Limit(
    20_000,
    "partitions of new topics, or added to topics, that all clients together create at once",
    protects="the disk, the database and other clients' time",
    when_hit="topics are not created until some partitions are allowed again; clients are told to "
    "come back",
)

PARTITIONS_CREATED_A_SECOND: Final = Limit(
    100,
    "partitions a second that all clients together create after those at once",
    protects="other clients' time: a partition costs a few milliseconds",
    when_hit="topics are not created; clients are told to come back",
)

ADDRESS_PARTITIONS_CREATED_AT_ONCE: Final = Limit(
    10_000,
    "partitions that the clients of one address create at once: a large deployment's topics",
    protects="clients of other addresses from having none left to create",
    when_hit="topics are not created for this address until some partitions are allowed again",
)

ADDRESS_PARTITIONS_CREATED_A_SECOND: Final = Limit(
    50,
    "partitions a second that the clients of one address create after those at once",
    protects="clients of other addresses from having none left to create",
    when_hit="topics are not created for this address; its clients are told to come back",
)

TOPICS_CHANGED_TOGETHER: Final = Limit(
    100,
    "topics that are created or deleted in one transaction",
    protects="other clients that create or delete a topic from one that does so with thousands",
    when_hit="the next ones wait until these are done, in turn with other clients'",
)

NAMESPACES_CREATED_AT_ONCE: Final = Limit(
    10_000,
    "Iggy streams that all clients together create at once",
    protects="memory, the database and other clients' time",
    when_hit="streams are not created until some are allowed again",
)

NAMESPACES_CREATED_A_SECOND: Final = Limit(
    100,
    "Iggy streams a second that all clients together create after those at once",
    protects="memory, the database and other clients' time",
    when_hit="streams are not created",
)

ADDRESS_NAMESPACES_CREATED_AT_ONCE: Final = Limit(
    5_000,
    "Iggy streams that the clients of one address create at once",
    protects="clients of other addresses from having none left to create",
    when_hit="streams are not created for this address until some are allowed again",
)

ADDRESS_NAMESPACES_CREATED_A_SECOND: Final = Limit(
    50,
    "Iggy streams a second that the clients of one address create after those at once",
    protects="clients of other addresses from having none left to create",
    when_hit="streams are not created for this address",
)

GROUPS_CREATED_AT_ONCE: Final = Limit(
    20_000,
    "consumer groups that all clients together create at once",
    protects="the places for groups, memory and the database",
    when_hit="groups are not created until some are allowed again",
)

GROUPS_CREATED_A_SECOND: Final = Limit(
    100,
    "consumer groups a second that all clients together create after those at once",
    protects="the places for groups, memory and the database",
    when_hit="groups are not created; clients are told to come back",
)

ADDRESS_GROUPS_CREATED_AT_ONCE: Final = Limit(
    5_000,
    "consumer groups that the clients of one address create at once",
    protects="clients of other addresses from having none left to create",
    when_hit="groups are not created for this address until some are allowed again",
)

ADDRESS_GROUPS_CREATED_A_SECOND: Final = Limit(
    50,
    "consumer groups a second that the clients of one address create after those at once",
    protects="clients of other addresses from having none left to create",
    when_hit="groups are not created for this address; its clients are told to come back",
)
