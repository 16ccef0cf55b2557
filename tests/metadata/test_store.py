"""The store keeps what it acknowledged, groups commits, and lets one bad write hurt nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import event, insert, select

from penstock.metadata.schema import properties
from penstock.metadata.store import MetadataError, MetadataStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metadata.sqlite"


def rows(file: Path) -> dict[str, str]:
    store = MetadataStore.open(file)
    found = {row.name: row.value for row in store.query(select(properties))}
    asyncio.run(store.close())
    return found


async def put(store: MetadataStore, name: str, value: str = "x") -> int:
    return await store.write(insert(properties), [{"name": name, "value": value}])


async def test_a_write_is_there_after_reopening(file: Path) -> None:
    store = MetadataStore.open(file)
    assert await put(store, "colour", "green") == 1
    await store.close()
    found = await asyncio.to_thread(rows, file)
    assert found["colour"] == "green"


async def test_a_write_is_there_for_another_process_when_it_returns(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "colour", "green")
    found = await asyncio.to_thread(rows, file)
    await store.close()
    assert found["colour"] == "green"


async def test_writes_that_arrive_together_share_commits(file: Path) -> None:
    store = MetadataStore.open(file)
    commits = 0

    def count(_connection: object) -> None:
        nonlocal commits
        commits += 1

    event.listen(store._engine, "commit", count)
    await asyncio.gather(*(put(store, f"key {number}") for number in range(200)))
    await store.close()
    assert 1 <= commits <= 3
    assert len(await asyncio.to_thread(rows, file)) == 201


async def test_a_refused_write_costs_its_neighbours_nothing(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "taken")
    results = await asyncio.gather(
        put(store, "before"), put(store, "taken"), put(store, "after"), return_exceptions=True
    )
    await store.close()
    assert results[0] == 1
    assert isinstance(results[1], MetadataError)
    assert results[2] == 1
    assert {"before", "taken", "after"} <= set(await asyncio.to_thread(rows, file))


async def test_statements_of_one_write_last_together_or_not_at_all(file: Path) -> None:
    store = MetadataStore.open(file)
    await put(store, "taken")
    with pytest.raises(MetadataError):
        await store.write_all(
            [
                (insert(properties), [{"name": "first", "value": "x"}]),
                (insert(properties), [{"name": "taken", "value": "x"}]),
            ]
        )
    await store.close()
    assert "first" not in await asyncio.to_thread(rows, file)


async def test_a_cancelled_caller_takes_nothing_back(file: Path) -> None:
    store = MetadataStore.open(file)
    caller = asyncio.create_task(put(store, "kept"))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await store.close()
    assert "kept" in await asyncio.to_thread(rows, file)


async def test_returning_gives_rows(file: Path) -> None:
    store = MetadataStore.open(file)
    statement = insert(properties).returning(properties.c.name)
    found = await store.write(
        statement, [{"name": name, "value": "x"} for name in ("one", "two", "three")]
    )
    await store.close()
    assert {row.name for row in found} == {"one", "two", "three"}


async def test_a_database_of_another_version_is_refused(file: Path) -> None:
    store = MetadataStore.open(file)
    await store.write(
        properties.update().where(properties.c.name == "schema_version").values(value="99")
    )
    await store.close()
    with pytest.raises(MetadataError, match="version 99"):
        MetadataStore.open(file)


def test_a_file_that_is_no_database_is_refused(file: Path) -> None:
    file.write_bytes(b"not a database, whatever its name says " * 100)
    with pytest.raises(MetadataError, match="can't be opened"):
        MetadataStore.open(file)
