"""The store keeps what it acknowledged, groups commits, and lets one bad write hurt nobody else."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from penstock.metadata.database import Row
from penstock.metadata.errors import MetadataError
from penstock.metadata.sqlite import SqliteDatabase
from penstock.metadata.statements import Statement
from penstock.metadata.store import Change, MetadataStore
from penstock.metadata.tables import PROPERTIES

INSERT = PROPERTIES.insert()
SELECT = PROPERTIES.select()
WOKEN_AT_ONCE = 300


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metadata.sqlite"


def rows(file: Path) -> dict[str, str]:
    store = MetadataStore.open(file)
    found = dict(store.read(SELECT))
    asyncio.run(store.close())
    return found


def row(name: str, value: str = "x") -> Change:
    return Change(INSERT, [{"name": name, "value": value}])


async def put(store: MetadataStore, name: str, value: str = "x") -> list[Row]:
    return await store.write(row(name, value))


def statements_of(store: MetadataStore) -> list[str]:
    """A list that grows by all that SQLite is asked to do from now on."""
    database = store._database
    assert isinstance(database, SqliteDatabase)
    said: list[str] = []
    database._connection.set_trace_callback(said.append)
    return said


async def test_a_write_is_there_after_reopening(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "colour", "green")
    await store.close()
    found = await asyncio.to_thread(rows, file)
    assert found["colour"] == "green"


async def test_a_write_is_there_for_another_process_when_it_returns(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "colour", "green")
    found = await asyncio.to_thread(rows, file)
    await store.close()
    assert found["colour"] == "green"


async def test_a_write_at_start_is_there_for_another_process_when_it_returns(file: Path) -> None:
    store = MetadataStore.open(file)
    store.write_at_start(row("colour", "green"))
    found = await asyncio.to_thread(rows, file)
    with pytest.raises(MetadataError):
        store.write_at_start(row("colour", "blue"))
    await store.close()
    assert found["colour"] == "green"


async def test_writes_that_arrive_together_share_commits(file: Path) -> None:
    store = MetadataStore.open(file)
    said = statements_of(store)
    await asyncio.gather(*(put(store, f"key {number}") for number in range(200)))
    await store.close()
    assert 1 <= said.count("COMMIT") <= 3
    assert len(await asyncio.to_thread(rows, file)) == 201


async def test_few_of_those_that_wait_for_one_commit_wake_in_one_pass_and_in_their_order(
    file: Path,
) -> None:
    store = MetadataStore.open(file)
    said = statements_of(store)
    told: list[str] = []

    async def ask(name: str) -> None:
        await put(store, name)
        told.append(name)

    names = [f"key {number}" for number in range(3_000)]
    asking = [asyncio.create_task(ask(name)) for name in names]
    passes = []
    while len(told) < len(names):
        await asyncio.sleep(0)
        passes.append(len(told))
    await asyncio.gather(*asking)
    await store.close()
    assert said.count("COMMIT") <= 2, "they wait for the same one"
    assert told == names
    at_once = max(after - before for before, after in itertools.pairwise(passes))
    assert at_once <= WOKEN_AT_ONCE


async def test_a_refused_write_costs_its_neighbours_nothing(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "taken")
    results = await asyncio.gather(
        put(store, "before"), put(store, "taken"), put(store, "after"), return_exceptions=True
    )
    await store.close()
    assert results[0] == results[2] == []
    assert isinstance(results[1], MetadataError)
    assert {"before", "taken", "after"} <= set(await asyncio.to_thread(rows, file))


async def test_a_refused_write_has_its_neighbours_share_commits_all_the_same(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "taken")
    said = statements_of(store)
    names = [f"key {number}" for number in range(1_000)]
    names.insert(700, "taken")
    results = await asyncio.gather(*(put(store, name) for name in names), return_exceptions=True)
    await store.close()
    refused = [name for name, result in zip(names, results, strict=True) if result != []]
    assert refused == ["taken"]
    assert said.count("COMMIT") <= 12
    assert set(names) <= set(await asyncio.to_thread(rows, file))


@pytest.mark.parametrize("value", [1 << 70, "\ud800", object()])
async def test_a_value_that_the_database_cannot_hold_costs_its_neighbours_nothing(
    file: Path, value: object
) -> None:
    store = MetadataStore.open(file)
    odd = store.write(Change(INSERT, [{"name": "odd", "value": value}]))
    results = await asyncio.gather(odd, put(store, "after"), return_exceptions=True)
    await store.close()
    assert isinstance(results[0], MetadataError)
    assert results[1] == []


async def test_a_full_disk_fails_what_did_not_fit_and_the_next_write_works(file: Path) -> None:
    store = MetadataStore.open(file)
    store.read(Statement("properties", "PRAGMA max_page_count=20", gives_rows=True))
    results = await asyncio.gather(
        put(store, "big", "x" * 1_000_000), put(store, "small"), return_exceptions=True
    )
    assert isinstance(results[0], MetadataError)
    assert results[1] == []
    await put(store, "next")
    await store.close()
    assert {"small", "next"} <= set(await asyncio.to_thread(rows, file))


async def test_statements_of_one_write_last_together_or_not_at_all(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "taken")
    with pytest.raises(MetadataError):
        await store.write(row("first"), row("taken"))
    await store.close()
    assert "first" not in await asyncio.to_thread(rows, file)


async def test_clients_read_no_sql_and_the_log_does(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MetadataStore.open(file)
    await put(store, "taken")
    with pytest.raises(MetadataError) as failure:
        await put(store, "taken")
    await store.close()
    assert str(failure.value) == "properties were not written; the broker's log says why"
    assert "UNIQUE constraint failed: properties.name" in caplog.text


async def test_a_cancelled_caller_takes_nothing_back(file: Path) -> None:
    store = MetadataStore.open(file)
    caller = asyncio.create_task(put(store, "kept"))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await store.close()
    assert "kept" in await asyncio.to_thread(rows, file)


async def test_a_write_gives_the_rows_that_it_reads(file: Path) -> None:
    store = MetadataStore.open(file)
    names = ("one", "two", "three")
    one_by_one = Change(PROPERTIES.select(where=["name"]), [{"name": name} for name in names])
    found = await store.write(
        Change(INSERT, [{"name": name, "value": "x"} for name in names]), one_by_one
    )
    await store.close()
    assert found == [(name, "x") for name in names]


def test_sqlite_waits_for_the_disk_and_minds_references(file: Path) -> None:
    store = MetadataStore.open(file)
    settings = [
        store.read(Statement("", f"PRAGMA {name}", gives_rows=True))[0][0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    ]
    full, on = 2, 1
    assert settings == ["wal", full, on]
    asyncio.run(store.close())


def test_a_file_that_is_no_database_is_refused(file: Path) -> None:
    file.write_bytes(b"not a database, whatever its name says " * 100)
    with pytest.raises(MetadataError, match="can't be opened"):
        MetadataStore.open(file)


def test_a_damaged_table_is_reported(file: Path) -> None:
    asyncio.run(MetadataStore.open(file).close())
    store = MetadataStore.open(file)
    store.write_at_start(Change(Statement("properties", 'DROP TABLE "namespaces"'), [{}]))
    with pytest.raises(MetadataError, match="namespaces can't be read"):
        store.read(Statement("namespaces", 'SELECT * FROM "namespaces"', gives_rows=True))
    asyncio.run(store.close())
