"""Bringing a database to the tables of this version of Penstock, when it is opened.

The version is a row of `properties`. To change the tables, change `tables.py` and append a step
here that makes the same of a database of the version before; a test compares both ways.
"""

from __future__ import annotations

import logging
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


def _run(database: Database, sql: str) -> None:
    database.execute(Statement("", sql))


STEPS: Final[tuple[Step, ...]] = (_keep_classic_groups, _keep_deletions)
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
        else:
            logger.info("%s: from schema version %s to %s", place, found, known[-1])
            for step in steps[known.index(found) :]:
                step(database)
        database.execute(_WRITE_VERSION, [{"name": _NAME, "value": known[-1]}])


def _version(database: Database) -> str | None:
    database.execute(PROPERTIES.create(database.words))
    rows = database.execute(_READ_VERSION, [{"name": _NAME}])
    return rows[0][1] if rows else None
