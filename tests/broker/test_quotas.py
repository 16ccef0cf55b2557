"""Goal: of all quotas the most special one holds, and those who match by name share it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import limits
from penstock.broker import quotas as module
from penstock.broker.errors import TooManyQuotasError
from penstock.broker.quotas import Entity, Quota, Quotas, named
from penstock.metadata.quotas import QuotaRepository
from penstock.metadata.store import MetadataStore

PRODUCED = Quota.PRODUCED_BYTES
WINDOW = 10
ORDER = [
    Entity(named("u"), named("c")),
    Entity(named("u"), named(None)),
    Entity(named("u")),
    Entity(named(None), named("c")),
    Entity(named(None), named(None)),
    Entity(named(None)),
    Entity(client_id=named("c")),
    Entity(client_id=named(None)),
]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


async def opened(folder: Path) -> tuple[Quotas, MetadataStore]:
    store = MetadataStore.open(folder / "database")
    quotas = Quotas(QuotaRepository(store))
    quotas.load()
    return quotas, store


async def test_the_most_special_quota_holds(tmp_path: Path, clock: list[float]) -> None:
    quotas, store = await opened(tmp_path)
    for number, entity in enumerate(reversed(ORDER), 1):
        await quotas.change(entity, {PRODUCED: 2.0**number})
    for number, entity in zip(range(len(ORDER), 0, -1), ORDER, strict=True):
        rate = 2.0**number
        spent = quotas.spend(PRODUCED, "u", "c", round(rate * (WINDOW + 3)))
        assert spent == pytest.approx(3), entity
        await quotas.change(entity, {PRODUCED: None})
    assert quotas.spend(PRODUCED, "u", "c", 10**9) == 0
    assert not quotas
    await store.close()


async def test_what_was_used_comes_back(tmp_path: Path, clock: list[float]) -> None:
    quotas, store = await opened(tmp_path)
    await quotas.change(Entity(client_id=named(None)), {PRODUCED: 100.0})
    assert quotas.spend(PRODUCED, "u", "a", 1000) == 0
    assert quotas.spend(PRODUCED, "u", "a", 200) == pytest.approx(2)
    assert quotas.spend(PRODUCED, "u", "b", 1000) == 0, "each client id has it to itself"
    assert quotas.spend(Quota.CONSUMED_BYTES, "u", "a", 10**6) == 0
    clock[0] += 3
    assert quotas.spend(PRODUCED, "other user", "a", 100) == 0
    assert quotas.spend(PRODUCED, "u", "a", 100) == pytest.approx(1), "all users share it"
    await store.close()


async def test_quotas_are_there_after_a_restart(tmp_path: Path) -> None:
    quotas, store = await opened(tmp_path)
    entity = Entity(named(None), named("=*"))
    await quotas.change(entity, {PRODUCED: 0.1, Quota.CONSUMED_BYTES: 1e300})
    await quotas.change(entity, {PRODUCED: None})
    await store.close()
    quotas, store = await opened(tmp_path)
    assert quotas.all() == {entity: {Quota.CONSUMED_BYTES: 1e300}}
    await store.close()


async def test_there_are_not_more_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    monkeypatch.setattr(limits, "QUOTAS", 2)
    monkeypatch.setattr(limits, "QUOTA_BUCKETS", 3)
    quotas, store = await opened(tmp_path)
    await quotas.change(Entity(named("a")), {PRODUCED: 1.0})
    with pytest.raises(TooManyQuotasError):
        await quotas.change(Entity(named("b")), {PRODUCED: 1.0, Quota.CONSUMED_BYTES: 1.0})
    await quotas.change(Entity(named("a")), {PRODUCED: 2.0})
    await quotas.change(Entity(client_id=named(None)), {PRODUCED: 1.0})
    for number in range(5):
        assert quotas.spend(PRODUCED, "u", str(number), WINDOW + 1) == pytest.approx(1)
    assert quotas.spend(PRODUCED, "u", "4", 1) == pytest.approx(2)
    assert quotas.spend(PRODUCED, "u", "0", WINDOW + 1) == pytest.approx(1), "it was forgotten"
    await store.close()
