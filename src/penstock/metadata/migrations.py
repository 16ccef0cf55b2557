"""Bringing a database to the tables of this version of Penstock, when it is opened.

The version is a row of `properties`. To change the tables, change `tables.py` and append a step
here that makes the same of a database of the version before; a test compares both ways.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.metadata.errors import MetadataError
from penstock.metadata.statements import Kind, Statement
from penstock.metadata.tables import PROPERTIES, TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.metadata.database import Database

Step: TypeAlias = Callable[["Database"], None]


def _keep_classic_groups(database: Database) -> None:
    words = database.words
    text, integer, data = words[Kind.TEXT], words[Kind.INTEGER], words[Kind.BYTES]
    _run(
        database,
        f"""CREATE TABLE "classic_groups" ("id" {text} NOT NULL, "generation" {integer} NOT NULL,
        "protocol_type" {text} NOT NULL, "protocol" {text} NOT NULL, "leader" {text} NOT NULL,
        PRIMARY KEY ("id"))""",
    )
    _run(
        database,
        f"""CREATE TABLE "classic_members" (
        "group_id" {text} NOT NULL REFERENCES "classic_groups" ("id") ON DELETE CASCADE,
        "member_id" {text} NOT NULL, "instance_id" {text} NOT NULL, "client_id" {text} NOT NULL,
        "client_host" {text} NOT NULL, "session_timeout_ms" {integer} NOT NULL,
        "rebalance_timeout_ms" {integer} NOT NULL, "protocols" {data} NOT NULL,
        "assignment" {data} NOT NULL, PRIMARY KEY ("group_id", "member_id"))""",
    )


_RESERVE_ID: Final = (
    """INSERT INTO "partitions" ("topic_id", "number") VALUES ('', -1)""",
    """INSERT INTO "properties" ("name", "value")
    SELECT 'partition_ids_given', CAST(MAX("id") - 1 AS VARCHAR) FROM "partitions" """,
    """DELETE FROM "partitions" WHERE "topic_id" = '' """,
)


def _keep_deletions(database: Database) -> None:
    """Have deletions noted until they are done, and partition ids given by the broker."""
    _run(database, """CREATE TABLE "deleted_topics" ("id" VARCHAR(32) NOT NULL PRIMARY KEY)""")
    # Only the database knows the highest id that it ever gave: a row more has the next one.
    for sql in _RESERVE_ID:
        _run(database, sql)


_SPLIT_SUBSCRIPTIONS: Final = (
    """INSERT INTO "new_subscriptions" SELECT "partition_id", "name", "mark_delete", "properties"
    FROM "subscriptions" """,
    """DROP TABLE "subscriptions" """,
    """ALTER TABLE "new_subscriptions" RENAME TO "subscriptions" """,
)


def _keep_cursors_in_blocks(database: Database) -> None:
    """Give each block of 1,024 acknowledged offsets a row of its own."""
    words = database.words
    partition = f""""partition_id" {words[Kind.INTEGER]} NOT NULL
        REFERENCES "partitions" ("id") ON DELETE CASCADE"""
    text, number = words[Kind.TEXT], words[Kind.BIGINT]
    _run(
        database,
        f"""CREATE TABLE "cursor_blocks" ({partition}, "name" {text} NOT NULL,
        "number" {number} NOT NULL, "bits" {words[Kind.BYTES]} NOT NULL,
        PRIMARY KEY ("partition_id", "name", "number"))""",
    )
    read = Statement(
        "", """SELECT "partition_id", "name", "acknowledged" FROM "subscriptions" """, True
    )
    write = Statement("", """INSERT INTO "cursor_blocks" VALUES (:id, :name, :number, :bits)""")
    for partition_id, name, packed in database.execute(read):
        rows = [
            {"id": partition_id, "name": name, "number": each, "bits": bits.to_bytes(128, "little")}
            for each, bits in _blocks_of_version_1(packed).items()
        ]
        database.execute(write, rows)
    _run(
        database,
        f"""CREATE TABLE "new_subscriptions" ({partition}, "name" {text} NOT NULL,
        "mark_delete" {number} NOT NULL, "properties" {text} NOT NULL,
        PRIMARY KEY ("partition_id", "name"))""",
    )
    for sql in _SPLIT_SUBSCRIPTIONS:
        _run(database, sql)


def _blocks_of_version_1(packed: bytes) -> dict[int, int]:
    """Read what was acknowledged above a cursor.

    These are all starts of ranges and then all ends; or, behind a byte more, numbers of blocks,
    each with its bits.
    """
    blocks: dict[int, int] = {}
    if len(packed) % 8:
        for number, bits in struct.iter_unpack("<q128s", packed[1:]):
            blocks[number] = int.from_bytes(bits, "little")
        return blocks
    numbers = struct.unpack(f"<{len(packed) // 8}q", packed)
    half = len(numbers) // 2
    for start, end in zip(numbers[:half], numbers[half:], strict=True):
        for number in range(start // 1024, -(-end // 1024)):
            low, high = max(start - 1024 * number, 0), min(end - 1024 * number, 1024)
            blocks[number] = blocks.get(number, 0) | (1 << high) - (1 << low)
    return blocks


def _find_offsets_by_partition(database: Database) -> None:
    # Each partition that was deleted had all committed offsets looked through.
    name = "committed_offsets_by_partition_id"
    _run(database, f'CREATE INDEX "{name}" ON "committed_offsets" ("partition_id")')


def _keep_exclusive_epochs(database: Database) -> None:
    words = database.words
    _run(
        database,
        f"""CREATE TABLE "exclusive_epochs" ("partition_id" {words[Kind.INTEGER]} NOT NULL
        REFERENCES "partitions" ("id") ON DELETE CASCADE, "epoch" {words[Kind.BIGINT]} NOT NULL,
        PRIMARY KEY ("partition_id"))""",
    )


def _keep_quotas(database: Database) -> None:
    text = database.words[Kind.TEXT]
    _run(
        database,
        f"""CREATE TABLE "quotas" ("user_name" {text} NOT NULL, "client_id" {text} NOT NULL,
        "quota" {text} NOT NULL, "a_second" {text} NOT NULL,
        PRIMARY KEY ("user_name", "client_id", "quota"))""",
    )


def _keep_deletions_of_partitions(database: Database) -> None:
    words = database.words
    _run(
        database,
        f"""CREATE TABLE "deleted_partitions" (
        "topic_id" {words[Kind.UUID]} NOT NULL REFERENCES "topics" ("id") ON DELETE CASCADE,
        "id" {words[Kind.INTEGER]} NOT NULL, "number" {words[Kind.INTEGER]} NOT NULL,
        PRIMARY KEY ("topic_id", "id"))""",
    )


def _keep_schemas(database: Database) -> None:
    words = database.words
    text, integer = words[Kind.TEXT], words[Kind.INTEGER]
    _run(
        database,
        f"""CREATE TABLE "schemas" (
        "topic_id" {words[Kind.UUID]} NOT NULL REFERENCES "topics" ("id") ON DELETE CASCADE,
        "version" {integer} NOT NULL, "kind" {text} NOT NULL, "name" {text} NOT NULL,
        "definition" {words[Kind.BYTES]} NOT NULL, "properties" {text} NOT NULL,
        "digest" {text} NOT NULL, "created_at_ms" {words[Kind.BIGINT]} NOT NULL,
        PRIMARY KEY ("topic_id", "version"))""",
    )


def _keep_transactions(database: Database) -> None:
    words = database.words
    text, number, big = words[Kind.TEXT], words[Kind.INTEGER], words[Kind.BIGINT]
    producer = f'"producer_id" {big} NOT NULL'
    partition = f"""{number} NOT NULL REFERENCES "partitions" ("id") ON DELETE CASCADE"""
    for sql in (
        f"""CREATE TABLE "transactions" ({producer}, "transactional_id" {text} NOT NULL,
        "previous_producer_id" {big} NOT NULL, "epoch" {number} NOT NULL,
        "last_epoch" {number} NOT NULL, "timeout_ms" {number} NOT NULL, "state" {text} NOT NULL,
        "started_at_ms" {big} NOT NULL, "changed_at_ms" {big} NOT NULL,
        PRIMARY KEY ("producer_id"))""",
        f"""CREATE TABLE "transaction_partitions" ({producer}, "partition_id" {partition},
        PRIMARY KEY ("producer_id", "partition_id"))""",
        f"""CREATE TABLE "transaction_participants" ({producer}, "name" {text} NOT NULL,
        PRIMARY KEY ("producer_id", "name"))""",
        f"""CREATE TABLE "pending_offsets" ({producer}, "kind" {text} NOT NULL,
        "name" {text} NOT NULL, "partition_id" {partition}, "offset" {big} NOT NULL,
        "leader_epoch" {number} NOT NULL, "note" {text} NOT NULL,
        "committed_at_ms" {big} NOT NULL,
        PRIMARY KEY ("producer_id", "kind", "name", "partition_id"))""",
    ):
        _run(database, sql)
    for table in ("transaction_partitions", "pending_offsets"):
        _run(database, f'CREATE INDEX "{table}_by_partition_id" ON "{table}" ("partition_id")')


def _keep_pending_acknowledgements(database: Database) -> None:
    words = database.words
    _run(
        database,
        f"""CREATE TABLE "pending_acknowledgements" ("partition_id" {words[Kind.INTEGER]} NOT NULL
        REFERENCES "partitions" ("id") ON DELETE CASCADE, "name" {words[Kind.TEXT]} NOT NULL,
        "producer_id" {words[Kind.BIGINT]} NOT NULL, "number" {words[Kind.BIGINT]} NOT NULL,
        "bits" {words[Kind.BYTES]} NOT NULL, "committed" {words[Kind.BOOLEAN]} NOT NULL,
        PRIMARY KEY ("partition_id", "name", "producer_id", "number"))""",
    )


def _keep_writer_epochs(database: Database) -> None:
    text, big = database.words[Kind.TEXT], database.words[Kind.BIGINT]
    _run(
        database,
        f"""CREATE TABLE "writer_epochs" ("writer" {text} NOT NULL, "epoch" {big} NOT NULL,
        "changed_at_ms" {big} NOT NULL, PRIMARY KEY ("writer"))""",
    )


_KEEP_FINGERPRINTS: Final = (
    """ALTER TABLE "writer_epochs" RENAME TO "known_writers" """,
    """INSERT INTO "writer_epochs" SELECT "writer", "epoch", "changed_at_ms", ''
    FROM "known_writers" """,
    """DROP TABLE "known_writers" """,
)


def _keep_fingerprints_of_epochs(database: Database) -> None:
    """Have epochs keep what they were made of; of earlier ones nobody knows."""
    text, big = database.words[Kind.TEXT], database.words[Kind.BIGINT]
    rename, fill, drop = _KEEP_FINGERPRINTS
    _run(database, rename)
    _run(
        database,
        f"""CREATE TABLE "writer_epochs" ("writer" {text} NOT NULL, "epoch" {big} NOT NULL,
        "changed_at_ms" {big} NOT NULL, "fingerprint" {text} NOT NULL, PRIMARY KEY ("writer"))""",
    )
    _run(database, fill)
    _run(database, drop)


def _run(database: Database, sql: str) -> None:
    database.execute(Statement("", sql))


STEPS: Final[tuple[Step, ...]] = (
    _keep_classic_groups,
    _keep_deletions,
    _keep_cursors_in_blocks,
    _find_offsets_by_partition,
    _keep_exclusive_epochs,
    _keep_quotas,
    _keep_deletions_of_partitions,
    _keep_schemas,
    _keep_transactions,
    _keep_pending_acknowledgements,
    _keep_writer_epochs,
    _keep_fingerprints_of_epochs,
)
"""The first one makes version 2 of version 1. A step that was released is never changed; it writes
its SQL out and uses nothing of `tables.py`, which goes on changing."""

_NAME: Final = "schema_version"
_READ_VERSION: Final = PROPERTIES.select(where=["name"])
_WRITE_VERSION: Final = PROPERTIES.upsert()

logger = logging.getLogger(__name__)


def migrate(database: Database, place: str, steps: Sequence[Step] = STEPS) -> None:
    """Make the tables of an empty database, and change those of an older one; all or nothing.

    Raises MetadataError, which names `place`, for a version that this Penstock does not know.
    """
    known = [str(version) for version in range(1, len(steps) + 2)]
    found = _version(database)
    if found == known[-1]:
        return
    if found is not None and found not in known:
        raise MetadataError(
            f"{place} has schema version {found}, and this Penstock reads {known[-1]}; "
            "use the version of Penstock that wrote it"
        )
    with database.schema_change():
        if found is None:
            for table in TABLES:
                database.execute(table.create(database.words))
                if table.index:
                    database.execute(table.create_index())
        else:
            logger.info("%s: from schema version %s to %s", place, found, known[-1])
            for step in steps[known.index(found) :]:
                step(database)
        database.execute(_WRITE_VERSION, [{"name": _NAME, "value": known[-1]}])


def _version(database: Database) -> str | None:
    database.execute(PROPERTIES.create(database.words))
    rows = database.execute(_READ_VERSION, [{"name": _NAME}])
    return rows[0][1] if rows else None
