"""Goal: whatever producers ask for, and wherever a crash comes, a transaction is whole or absent in
every partition, its offsets with it, and what its producer was told is what became of it.

Method: histories that Hypothesis makes, and one in which a crash comes at each of its steps.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.broker.errors import BrokerError
from penstock.broker.transactions.markers import Markers
from penstock.broker.transactions.states import Producer
from penstock.log.errors import LogError, LogFailedError
from penstock.metadata.errors import MetadataError
from transaction_house import PARTITIONS, TIMEOUT_MS, House

REFUSALS = (BrokerError, LogError, MetadataError)


@dataclass
class Written:
    """What a producer has done in one transaction, and what it was told of its end."""

    parts: dict[int, list[int]] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    committed: bool | None = None
    wanted: bool | None = None


class Client:
    """A producer that keeps its own books, and has a transaction after another."""

    def __init__(self, house: House, name: str, *, bumps: bool) -> None:
        self.house = house
        self.name = name
        self.bumps = bumps
        self.producer: Producer | None = None
        self.now = Written()
        self.history: list[Written] = []

    async def initialise(self) -> None:
        self._next()
        self.producer = None
        self.producer = await self.house.coordinator.initialise(self.name, TIMEOUT_MS)

    async def write(self, partition: int, value: int) -> None:
        assert self.producer is not None
        await self.house.coordinator.add_partitions(self.name, self.producer, [partition])
        self.house.write(self.producer, partition, value)
        self.now.parts.setdefault(partition, []).append(value)

    async def commit_offset(self, partition: int, value: int) -> None:
        assert self.producer is not None
        await self.house.commit_offset(self.name, self.producer, partition, value)
        self.now.offsets[partition] = value

    async def end(self, *, committed: bool) -> None:
        assert self.producer is not None
        if not self.bumps and not self.now.parts and not self.now.offsets:
            return  # As clients do.
        self.now.wanted = committed if self.now.wanted is None else self.now.wanted
        self.producer = await self.house.coordinator.end(
            self.name, self.producer, committed=self.now.wanted, bumps=self.bumps
        )
        self.now.committed = self.now.wanted
        self._next()

    def _next(self) -> None:
        self.history.append(self.now)
        self.now = Written()


def both_kinds(house: House) -> list[Client]:
    """One that gets an epoch with each transaction, and one that does not."""
    return [Client(house, "a", bumps=True), Client(house, "b", bumps=False)]


def check(house: House, clients: list[Client]) -> None:
    """Hold what there is against the books."""
    visible = {each: house.partitions[each].visible() for each in PARTITIONS}
    known = [written for client in clients for written in [*client.history, client.now]]
    for written in known:
        seen = [
            value in visible[partition]
            for partition, values in written.parts.items()
            for value in values
        ]
        assert len(set(seen)) <= 1, f"torn: {written}"
        if written.committed is not None:
            assert set(seen) <= {written.committed}, f"otherwise than said: {written}"
        if written.wanted is not True:
            assert True not in seen, f"dirty: {written}"
    for partition in PARTITIONS:
        assert len(visible[partition]) == len(set(visible[partition])), "doubled"
        _check_offset(partition, known, visible, house.committed(partition))


def _check_offset(
    partition: int, known: list[Written], visible: dict[int, list[int]], found: int | None
) -> None:
    """Values grow, so the offset is that of the last one that was committed, or of one that may."""
    sure = [each.offsets[partition] for each in known if partition in each.offsets]
    taken = [
        each.offsets[partition]
        for each in known
        if partition in each.offsets and each.committed is True
    ]
    assert found is None or found in sure
    if taken:
        assert found is not None
    for each in known:
        if each.offsets.get(partition) == found and found is not None:
            assert each.committed is not False
            seen = [value in visible[at] for at, values in each.parts.items() for value in values]
            assert all(seen), f"torn from its offsets: {each}"


class Histories(RuleBasedStateMachine):
    """Two producers with one coordinator, which now and then dies."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.house = House()
        self.values = 0
        self.call(self._start())

    async def _start(self) -> None:
        self.house.start()
        self.clients = both_kinds(self.house)
        self.gone: list[Client] = []

    def call(self, work: Any) -> None:
        self.runner.run(work)

    def ask(self, work: Any) -> None:
        """What is refused is for the producer to begin anew."""
        with contextlib.suppress(*REFUSALS):
            self.call(work)

    def client(self, number: int) -> Client:
        return self.clients[number]

    def next_value(self) -> int:
        self.values += 1
        return self.values

    @rule(number=st.integers(0, 1))
    def initialise(self, number: int) -> None:
        self.ask(self.client(number).initialise())

    @rule(number=st.integers(0, 1))
    def replace(self, number: int) -> None:
        """Another process with the same name; the old one goes on as long as it can."""
        old = self.client(number)
        self.gone.append(old)
        self.clients[number] = Client(self.house, old.name, bumps=old.bumps)
        self.ask(self.clients[number].initialise())

    @rule(number=st.integers(0, 1), partition=st.sampled_from(PARTITIONS), old=st.booleans())
    def write(self, number: int, partition: int, old: bool) -> None:
        client = self._either(number, old)
        if client.producer is not None:
            self.ask(client.write(partition, self.next_value()))

    @rule(number=st.integers(0, 1), partition=st.sampled_from(PARTITIONS), old=st.booleans())
    def commit_offset(self, number: int, partition: int, old: bool) -> None:
        client = self._either(number, old)
        if client.producer is not None:
            self.ask(client.commit_offset(partition, self.next_value()))

    @rule(number=st.integers(0, 1), committed=st.booleans(), old=st.booleans())
    def end(self, number: int, committed: bool, old: bool) -> None:
        client = self._either(number, old)
        if client.producer is not None:
            self.ask(client.end(committed=committed))

    def _either(self, number: int, old: bool) -> Client:
        return self.gone[-1] if old and self.gone else self.client(number)

    @rule(partition=st.sampled_from(PARTITIONS))
    def break_or_mend(self, partition: int) -> None:
        found = self.house.partitions[partition]
        found.broken = not found.broken

    @rule()
    def fill_or_clear_the_disk(self) -> None:
        self.house.database_fails = not self.house.database_fails

    @rule()
    def let_time_pass(self) -> None:
        self.house.now_ms += TIMEOUT_MS + 1
        self.ask(self.house.coordinator.check_times())

    @rule()
    def crash(self) -> None:
        self.call(self.house.restart())

    @invariant()
    def nobody_holds_a_turn(self) -> None:
        assert len(self.house.coordinator._known.open) <= 2

    def teardown(self) -> None:
        self.house.database_fails = False
        for partition in self.house.partitions.values():
            partition.broken = False
        self.call(self.house.settled())
        check(self.house, [*self.clients, *self.gone])
        self.call(self.house.close())
        self.runner.close()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


async def lived_through(house: House, clients: list[Client]) -> None:
    """Two transactions, of which the first is committed and the second aborted, of each client."""
    value = 0
    for committed in (True, False):
        for client in clients:
            if client.producer is None:
                await client.initialise()
            for partition in (1, 2, 3):
                value += 1
                await client.write(partition, value)
            await client.commit_offset(2, value)
            await client.end(committed=committed)


async def run_until_crash(crash_at: int | None) -> tuple[House, list[Client]]:
    house = House()
    house.start()
    clients = both_kinds(house)
    house.crash_at = crash_at
    house.steps = 0
    work = asyncio.ensure_future(lived_through(house, clients))
    frozen = asyncio.ensure_future(house.frozen.wait())
    await asyncio.wait([work, frozen], return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        # What goes on in other tasks comes to its end, or to the same point.
        for _ in range(20):
            await asyncio.sleep(0)
    frozen.cancel()
    if work.done():
        assert isinstance(work.exception(), LogFailedError | None)
    return house, clients


async def steps() -> int:
    house, _ = await run_until_crash(None)
    count = house.steps
    await house.close()
    return count


async def test_a_crash_at_any_step_leaves_each_transaction_whole_or_absent() -> None:
    count = await steps()
    assert count > 30
    for crash_at in range(count + 1):
        house, clients = await run_until_crash(crash_at)
        await house.settled()
        check(house, clients)
        await house.close()


async def test_the_check_finds_a_coordinator_that_forgets_a_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = Markers.write

    async def forgetting(
        self: Markers, producer_id: int, epoch: int, partition_ids: Any, *, committed: bool
    ) -> set[int]:
        left = set(partition_ids) - {3}
        return await write(self, producer_id, epoch, left, committed=committed)

    monkeypatch.setattr(Markers, "write", forgetting)
    house, clients = await run_until_crash(None)
    await house.settled()
    with pytest.raises(AssertionError, match="torn"):
        check(house, clients)
    await house.close()


async def test_the_check_finds_offsets_that_do_not_wait_for_their_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = House()
    house.start()
    client = Client(house, "a", bumps=True)
    await client.initialise()
    await client.write(1, 1)
    await client.commit_offset(1, 2)
    for step in (house.pending.outcome, house.pending.decided):  # type: ignore[union-attr]  # it is
        step(client.producer.id, committed=True)
    await client.end(committed=False)
    with pytest.raises(AssertionError):
        check(house, [client])
    await house.close()
