"""Databases of every version since the first open with all that is in them, or stay as they are."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.broker import Broker
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.metadata.database import Database
from penstock.metadata.errors import MetadataError
from penstock.metadata.migrations import STEPS, migrate
from penstock.metadata.sqlite import SqliteDatabase
from penstock.metadata.statements import Statement
from penstock.metadata.store import MetadataStore
from penstock.metadata.tables import TABLES

ORDERS_ID = "9cb7f5ae60c8442a9c265d7baedcdee5"
NEWEST = len(STEPS) + 1
VERSION_1 = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metadata.sqlite"


@pytest.fixture
def old(file: Path) -> Iterator[SqliteDatabase]:
    """A database of version 1, open."""
    make_version_1(file)
    with closing(SqliteDatabase(file)) as database:
        yield database


def make_version_1(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(VERSION_1)


def read(file: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(sql).fetchall()


def version(file: Path) -> str:
    ((found,),) = read(file, "SELECT value FROM properties WHERE name = 'schema_version'")
    assert isinstance(found, str)
    return found


def shape(file: Path) -> dict[str, list[Any]]:
    """Of each table its columns, what is unique together, and what references what."""

    def told(about: str, name: str) -> list[Any]:
        return read(file, f"PRAGMA {about}({name})")

    found = {}
    for table in TABLES:
        indexes = [index for _, index, *_ in told("index_list", table.name)]
        unique = sorted([column for *_, column in told("index_info", index)] for index in indexes)
        references = sorted(reference[2:] for reference in told("foreign_key_list", table.name))
        found[table.name] = [told("table_info", table.name), unique, references]
    return found


def run(database: Database, sql: str) -> None:
    database.execute(Statement("", sql))


def add_colour(database: Database) -> None:
    run(database, "ALTER TABLE topics ADD COLUMN colour VARCHAR NOT NULL DEFAULT 'red'")


def paint_green(database: Database) -> None:
    run(database, "UPDATE topics SET colour = 'green'")


def replace_topics(database: Database) -> None:
    """What SQLite can't alter is made anew, and the old table dropped."""
    run(database, "CREATE TABLE new_topics (id VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR)")
    run(database, "INSERT INTO new_topics SELECT id, kafka_name FROM topics")
    run(database, "DROP TABLE topics")
    run(database, "ALTER TABLE new_topics RENAME TO topics")


def forget_topics(database: Database) -> None:
    run(database, "DELETE FROM topics")


async def test_a_database_of_version_1_opens_with_all_that_is_in_it(tmp_path: Path) -> None:
    make_version_1(tmp_path / "metadata.sqlite")
    (tmp_path / "topics" / ORDERS_ID / "0").mkdir(parents=True)
    broker = await Broker.open(tmp_path, BrokerSettings())
    orders = broker.topics.by_kafka_name("orders")
    assert orders is not None
    assert (orders.config.explicit, orders.partitioned) == ({"retention_ms": "1000"}, True)
    assert [partition.id for partition in orders.partitions] == [3, 4]
    other = broker.topics.get(TopicName("acme", "shop", "größe"))
    assert other is not None
    assert (other.iggy_topic_id, other.partitioned, other.config.explicit) == (0, False, {})
    assert [space.name.namespace for space in broker.namespaces.all()] == [
        "default",
        "shop",
        "empty",
    ]
    billing = broker.offsets.of_owner(OffsetOwner("kafka", "billing"))
    assert billing == {3: CommittedOffset(5, 0, "it's a note", 1700000000000)}
    consumer = broker.offsets.of_owner(OffsetOwner("iggy-consumer", "7"))
    assert consumer == {4: CommittedOffset(1 << 40)}
    assert [group.name for group in broker.topic_groups.of_topic(orders)] == ["readers", "writers"]
    # Its messages are not part of the dump, so its acknowledgements are taken back.
    await orders.partitions[0].opened()
    audit = broker.subscriptions.get(orders.partitions[0], "audit")
    assert audit is not None
    assert (audit.cursor.position, audit.properties) == (0, {"team": "blue"})
    assert await broker.producer_ids.take() == 1000
    more = await broker.topics.create(TopicName("public", "default", "more"), 1)
    assert more.partitions[0].id == 7  # 6 was given to a topic that was deleted.
    await broker.close()


def test_new_tables_are_those_that_the_steps_make(tmp_path: Path) -> None:
    new, migrated = tmp_path / "new.sqlite", tmp_path / "migrated.sqlite"
    make_version_1(migrated)
    for file in (new, migrated):
        asyncio.run(MetadataStore.open(file).close())
    assert shape(new) == shape(migrated)
    assert version(new) == version(migrated)


def test_offsets_are_found_by_partition_in_an_older_database(file: Path) -> None:
    """Else each partition that is deleted has all of them looked through."""
    make_version_1(file)
    asyncio.run(MetadataStore.open(file).close())
    delete = "DELETE FROM committed_offsets WHERE partition_id = 1"
    (plan,) = read(file, f"EXPLAIN QUERY PLAN {delete}")
    assert "USING COVERING INDEX" in plan[-1] or "USING INDEX" in plan[-1], plan


def test_acknowledged_ranges_become_blocks(file: Path) -> None:
    make_version_1(file)
    block = (7).to_bytes(8, "little", signed=True) + bytes([255]) * 128
    with closing(sqlite3.connect(file)) as connection, connection:
        names = {
            "many": b"\1" + block,
            "none": b"",
            "long": struct.pack("<4q", 1000, 3000, 2100, 3001),
        }
        for name, packed in names.items():
            connection.execute(
                "INSERT INTO subscriptions VALUES (3, ?, 0, ?, '{}')", (name, packed)
            )
    asyncio.run(MetadataStore.open(file).close())
    found = {
        (name, number): int.from_bytes(bits, "little")
        for _, name, number, bits in read(file, "SELECT * FROM cursor_blocks")
    }
    full = (1 << 1024) - 1
    assert found == {
        ("audit", 0): 0b1100000,
        ("many", 7): full,
        ("long", 0): full >> 1000 << 1000,
        ("long", 1): full,
        ("long", 2): (1 << 2100 - 2048) - 1 | 1 << 3000 - 2048,
    }
    assert len(read(file, "SELECT * FROM subscriptions")) == 4


def test_epochs_of_earlier_versions_stay_and_say_not_what_they_were_made_of(
    old: SqliteDatabase, file: Path
) -> None:
    names = [step.__name__ for step in STEPS]
    step = names.index("_keep_fingerprints_of_epochs")
    migrate(old, "here", STEPS[:step])
    run(old, "INSERT INTO writer_epochs VALUES ('query', 7, 1700000000000)")
    migrate(old, "here")
    assert read(file, "SELECT * FROM writer_epochs") == [("query", 7, 1700000000000, "")]


def test_an_older_database_takes_every_step_that_it_lacks(old: SqliteDatabase, file: Path) -> None:
    migrate(old, "here", [add_colour])
    assert version(file) == "2"
    migrate(old, "here", [add_colour, paint_green])
    migrate(old, "here", [add_colour, paint_green])
    assert version(file) == "3"
    assert read(file, "SELECT DISTINCT colour FROM topics") == [("green",)]


def test_a_new_database_takes_no_step(file: Path) -> None:
    with closing(SqliteDatabase(file)) as database:
        migrate(database, "here", [forget_topics, paint_green])
    assert version(file) == "3"


def test_a_step_that_fails_takes_the_others_back(old: SqliteDatabase, file: Path) -> None:
    before = shape(file)
    with pytest.raises(sqlite3.OperationalError):
        migrate(old, "here", [add_colour, paint_green, add_colour])
    assert shape(file) == before
    assert version(file) == "1"


def test_a_table_that_is_replaced_keeps_what_references_it(old: SqliteDatabase, file: Path) -> None:
    migrate(old, "here", [replace_topics])
    assert read(file, "SELECT id FROM partitions ORDER BY id") == [(3,), (4,), (5,)]
    run(old, "DELETE FROM topics WHERE name = 'orders'")
    assert read(file, "SELECT id FROM partitions") == [(5,)]


def test_a_step_that_leaves_rows_without_their_parent_is_taken_back(
    old: SqliteDatabase, file: Path
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="references"):
        migrate(old, "here", [forget_topics])
    assert len(read(file, "SELECT * FROM topics")) == 2


@pytest.mark.parametrize("found", ["99", "0", "one"])
def test_a_database_of_a_version_that_is_not_known_is_left_alone(file: Path, found: str) -> None:
    make_version_1(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE properties SET value = ?", [found])
        connection.execute("DROP TABLE subscriptions")
    with pytest.raises(MetadataError, match=f"version {found}, and this Penstock reads {NEWEST};"):
        MetadataStore.open(file)
    assert not read(file, "SELECT * FROM sqlite_master WHERE name = 'subscriptions'")


def test_what_refers_to_a_row_that_is_deleted_is_found_without_a_scan(file: Path) -> None:
    """Else deleting a topic takes as long as there are offsets of all topics."""
    with closing(SqliteDatabase(file)) as database:
        migrate(database, "here")
    for table in TABLES:
        for *_, column, _, _, _, _ in read(file, f"PRAGMA foreign_key_list({table.name})"):
            sql = f'EXPLAIN QUERY PLAN DELETE FROM {table.name} WHERE "{column}" = 1'
            plan = read(file, sql)[0][-1]
            assert plan.startswith("SEARCH"), table.name
