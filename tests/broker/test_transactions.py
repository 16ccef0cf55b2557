"""Goal: a transaction is whole or absent everywhere, and only its own producer has a say in it.

Method: a coordinator over a real database and partitions that are lists. A crash leaves what the
database and the partitions have, and a coordinator that is made anew goes on with it.
"""

from __future__ import annotations

import asyncio

import pytest

from penstock import limits, pace
from penstock.broker.errors import (
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    InvalidTransactionTimeoutError,
    NotInTransactionError,
    ProducerFencedError,
    TooManyTransactionsError,
    UnknownPartitionError,
    UnknownTransactionError,
)
from penstock.broker.transactions.states import LAST_EPOCH, Producer
from penstock.log.errors import LogFailedError
from penstock.metadata.errors import MetadataError
from transaction_house import GROUP, TIMEOUT_MS, House, Marker, refused

ID = "payments"


async def begun(house: House, *partitions: int, name: str = ID) -> Producer:
    """A producer that has written its epoch to partitions."""
    producer = await house.coordinator.initialise(name, TIMEOUT_MS)
    await house.coordinator.add_partitions(name, producer, partitions)
    for each in partitions:
        house.write(producer, each, producer.epoch)
    return producer


def state(house: House, name: str = ID) -> str:
    found = house.coordinator.describe(name)
    assert found is not None
    return found.row.state


@pytest.mark.parametrize("committed", [True, False])
async def test_an_end_reaches_every_partition(house: House, committed: bool) -> None:
    producer = await begun(house, 1, 2)
    assert state(house) == "Ongoing"
    assert await house.coordinator.end(ID, producer, committed=committed) == producer
    for each in (1, 2):
        assert house.partitions[each].entries[-1] == Marker(*producer, committed)
    assert not house.partitions[3].entries
    assert state(house) == ("CompleteCommit" if committed else "CompleteAbort")
    assert await house.coordinator.end(ID, producer, committed=committed) == producer
    assert len(house.partitions[1].entries) == 2, "to end it again changes nothing"
    with pytest.raises(InvalidTransactionStateError):
        await house.coordinator.end(ID, producer, committed=not committed)


@pytest.mark.parametrize("committed", [True, False])
async def test_an_end_gives_the_next_epoch_where_that_is_asked_for(
    house: House, committed: bool
) -> None:
    producer = await begun(house, 1)
    following = producer._replace(epoch=producer.epoch + 1)
    for _ in range(3):  # Whoever did not hear the answer asks again.
        found = await house.coordinator.end(ID, producer, committed=committed, bumps=True)
        assert found == following
    assert house.partitions[1].entries[1:] == [Marker(*following, committed)]
    with pytest.raises(InvalidTransactionStateError):
        await house.coordinator.end(ID, producer, committed=not committed, bumps=True)
    await house.coordinator.add_partitions(ID, following, [1])
    with pytest.raises(ProducerFencedError):
        await house.coordinator.end(ID, producer, committed=committed, bumps=True)


async def test_nothing_can_be_aborted_but_not_committed(house: House) -> None:
    producer = await house.coordinator.initialise(ID, TIMEOUT_MS)
    for committed, bumps in [(True, False), (False, False), (True, True)]:
        with pytest.raises(InvalidTransactionStateError):
            await house.coordinator.end(ID, producer, committed=committed, bumps=bumps)
    aborted = await house.coordinator.end(ID, producer, committed=False, bumps=True)
    assert aborted == producer._replace(epoch=1)


async def test_each_instance_of_a_producer_fences_the_one_before(house: House) -> None:
    first = await begun(house, 1)
    second = await house.coordinator.initialise(ID, TIMEOUT_MS)
    assert second.id == first.id
    assert house.partitions[1].entries[-1] == Marker(first.id, first.epoch + 1, committed=False)
    assert second.epoch == first.epoch + 2
    for work in (
        house.coordinator.add_partitions(ID, first, [1]),
        house.coordinator.end(ID, first, committed=True),
        house.commit_offset(ID, first, 1, 5),
    ):
        assert await refused(work) is ProducerFencedError
    await house.coordinator.add_partitions(ID, second, [1])
    with pytest.raises(InvalidProducerEpochError):
        house.write(first, 1, 1)


async def test_a_producer_that_goes_on_says_who_it_was(house: House) -> None:
    first = await house.coordinator.initialise(ID, TIMEOUT_MS)
    second = await house.coordinator.initialise(ID, TIMEOUT_MS, first)
    assert second == first._replace(epoch=1)
    assert await house.coordinator.initialise(ID, TIMEOUT_MS, first) == second, (
        "its answer was lost"
    )
    await house.coordinator.initialise(ID, TIMEOUT_MS)
    for stale in (first, second, Producer(first.id + 77, 2)):
        with pytest.raises(ProducerFencedError):
            await house.coordinator.initialise(ID, TIMEOUT_MS, stale)


async def test_epochs_of_the_past_and_of_the_future_are_refused(house: House) -> None:
    producer = await begun(house, 1)
    for epoch in (-1, producer.epoch - 1, producer.epoch + 1, 32_767):
        other = producer._replace(epoch=epoch)
        assert (
            await refused(house.coordinator.add_partitions(ID, other, [2])) is ProducerFencedError
        )
        with pytest.raises(InvalidProducerEpochError):
            house.write(other, 1, 1)
    stranger = Producer(producer.id + 1, producer.epoch)
    work = house.coordinator.add_partitions(ID, stranger, [2])
    assert await refused(work) is UnknownTransactionError
    work = house.coordinator.add_partitions("other", producer, [2])
    assert await refused(work) is UnknownTransactionError
    with pytest.raises(NotInTransactionError):
        house.write(producer, 2, 1)


async def test_the_last_epoch_is_followed_by_another_producer_id(house: House) -> None:
    producer = await house.coordinator.initialise(ID, TIMEOUT_MS)
    row = house.coordinator.all()[ID]._replace(epoch=LAST_EPOCH)
    house.coordinator._known.put(row)
    last = producer._replace(epoch=LAST_EPOCH)
    await house.coordinator.add_partitions(ID, last, [1])
    house.write(last, 1, 5)
    following = await house.coordinator.end(ID, last, committed=True, bumps=True)
    assert (following.id > last.id, following.epoch) == (True, 0)
    assert await house.coordinator.end(ID, last, committed=True, bumps=True) == following
    assert house.partitions[1].visible() == [5]
    await house.restart()
    assert await house.coordinator.end(ID, last, committed=True, bumps=True) == following
    await house.coordinator.add_partitions(ID, following, [1])


async def test_whoever_goes_on_from_the_last_epoch_gets_another_producer_id(house: House) -> None:
    producer = await house.coordinator.initialise(ID, TIMEOUT_MS)
    house.coordinator._known.put(house.coordinator.all()[ID]._replace(epoch=LAST_EPOCH))
    last = producer._replace(epoch=LAST_EPOCH)
    following = await house.coordinator.initialise(ID, TIMEOUT_MS, last)
    assert (following.id > last.id, following.epoch) == (True, 0)
    assert await house.coordinator.initialise(ID, TIMEOUT_MS, last) == following
    await house.restart()
    assert list(house.coordinator.all()) == [ID]


async def test_who_has_no_part_yet_may_not_begin_a_transaction_of_the_older_kind(
    house: House,
) -> None:
    producer = await house.coordinator.initialise(ID, TIMEOUT_MS)
    with pytest.raises(NotInTransactionError):
        await house.coordinator.add_name(ID, producer, "group:g", begins=False)
    await house.coordinator.add_name(ID, producer, "group:g")
    await house.restart()
    await house.coordinator.add_name(ID, producer, "group:g", begins=False)
    with pytest.raises(NotInTransactionError):
        await house.coordinator.add_name(ID, producer, "group:h", begins=False)


async def test_a_transaction_goes_on_after_a_restart(house: House) -> None:
    producer = await begun(house, 1)
    await house.restart()
    house.write(producer, 1, 77)
    with pytest.raises(NotInTransactionError):
        house.write(producer, 2, 77)
    await house.coordinator.add_partitions(ID, producer, [2])
    house.write(producer, 2, 78)
    await house.coordinator.end(ID, producer, committed=True)
    assert (house.partitions[1].visible(), house.partitions[2].visible()) == ([0, 77], [78])


async def test_what_is_open_for_too_long_is_aborted(house: House) -> None:
    producer = await begun(house, 1)
    await house.commit_offset(ID, producer, 1, 3)
    await house.restart()
    house.now_ms += TIMEOUT_MS
    await house.coordinator.check_times()
    assert state(house) == "Ongoing"
    house.now_ms += 1
    await house.coordinator.check_times()
    assert state(house) == "CompleteAbort"
    assert house.partitions[1].entries[-1] == Marker(producer.id, 1, committed=False)
    assert not house.pending.is_pending(GROUP, 1)
    for bumps in (True, False):
        with pytest.raises(ProducerFencedError):
            await house.coordinator.end(ID, producer, committed=True, bumps=bumps)
    with pytest.raises(NotInTransactionError):
        house.write(producer, 1, 1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_a_time_out_has_bounds(house: House, timeout_ms: int) -> None:
    for work in (
        house.coordinator.initialise(ID, timeout_ms),
        house.coordinator.begin(timeout_ms),
    ):
        assert await refused(work) is InvalidTransactionTimeoutError


async def test_an_end_is_tried_again_where_a_partition_fails(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.broker.transactions.endings.RETRY_SECONDS", 0)
    producer = await begun(house, 1, 2)
    house.partitions[2].broken = True
    await house.coordinator.end(ID, producer, committed=True)
    assert state(house) == "PrepareCommit"
    for work in (
        house.coordinator.end(ID, producer, committed=True),
        house.coordinator.initialise(ID, TIMEOUT_MS),
        house.coordinator.add_partitions(ID, producer, [1]),
    ):
        assert await refused(work) is ConcurrentTransactionsError
    house.partitions[2].broken = False
    async with asyncio.timeout(30):
        while state(house) != "CompleteCommit":
            await asyncio.sleep(0)
    assert [house.partitions[each].visible() for each in (1, 2)] == [[0], [0]]
    assert len(house.partitions[1].entries) == 2, "it had heard"


async def test_what_is_not_safe_is_not_committed(house: House) -> None:
    producer = await begun(house, 1, 2)
    house.partitions[2].failure = LogFailedError("a flush failed")
    assert await refused(house.coordinator.end(ID, producer, committed=True)) is LogFailedError
    assert state(house) == "Ongoing"
    house.write(producer, 1, 1)
    house.partitions[2].failure = None
    await house.coordinator.end(ID, producer, committed=True)


async def test_what_the_database_does_not_take_is_refused_and_changes_nothing(
    house: House,
) -> None:
    producer = await begun(house, 1)
    await house.commit_offset(ID, producer, 1, 3)
    house.database_fails = True
    for work in (
        house.coordinator.end(ID, producer, committed=True),
        house.coordinator.add_partitions(ID, producer, [2]),
        house.commit_offset(ID, producer, 1, 9),
        house.coordinator.initialise(ID, TIMEOUT_MS),
    ):
        assert await refused(work) is MetadataError
    house.database_fails = False
    house.write(producer, 1, 1)
    await house.coordinator.end(ID, producer, committed=True)
    assert house.committed(1) == 3


async def test_partitions_that_are_deleted_have_no_part(house: House) -> None:
    producer = await begun(house, 1, 2)
    await house.commit_offset(ID, producer, 2, 3)
    gone = house.partitions.pop(2)
    await house.coordinator.add_partitions(ID, producer, [2])
    await house.coordinator.end(ID, producer, committed=True)
    assert (len(gone.entries), house.committed(2)) == (1, None)
    assert house.partitions[1].visible() == [0]


async def test_a_producer_without_a_name_has_one_transaction(house: House) -> None:
    producer = await house.coordinator.begin(TIMEOUT_MS)
    await house.coordinator.add_partitions("", producer, [1])
    house.write(producer, 1, 5)
    await house.restart()
    assert house.coordinator.how_ended(producer.id) is None
    await house.coordinator.end("", producer, committed=True)
    assert house.coordinator.how_ended(producer.id) is True
    assert house.partitions[1].visible() == [5]
    for work in (
        house.coordinator.end("", producer, committed=True),
        house.coordinator.add_partitions("", producer, [1]),
    ):
        assert await refused(work) is UnknownTransactionError
    await house.rows.close()
    await house.restart()
    assert not house.coordinator._known.open
    assert (await house.coordinator.begin(TIMEOUT_MS)).id != producer.id


async def test_names_of_others_open_nothing_of_who_has_none(house: House) -> None:
    named = await begun(house, 1)
    for name in ("", "stranger"):
        work = house.coordinator.end(name, named, committed=True)
        assert await refused(work) is UnknownTransactionError


async def test_ids_that_nobody_uses_are_forgotten(house: House) -> None:
    old = await begun(house, 1, name="old")
    await house.coordinator.end("old", old, committed=True)
    idle = await house.coordinator.initialise("idle", TIMEOUT_MS)
    house.now_ms += house.settings.id_expiration_ms
    await house.coordinator.initialise("fresh", TIMEOUT_MS)
    await house.coordinator.check_times()
    assert set(house.coordinator.all()) == {"old", "idle", "fresh"}
    house.now_ms += 1
    await house.coordinator.check_times()
    assert set(house.coordinator.all()) == {"fresh"}
    for name, producer in {"old": old, "idle": idle}.items():
        work = house.coordinator.add_partitions(name, producer, [1])
        assert await refused(work) is UnknownTransactionError
    await house.rows.close()
    await house.restart()
    assert set(house.coordinator.all()) == {"fresh"}


async def test_ids_are_read_while_others_are_served(house: House) -> None:
    first = await house.coordinator.initialise(ID, TIMEOUT_MS)
    await begun(house, 1, name="open")
    await house.coordinator.close()
    house.start()
    assert list(house.coordinator.all()) == ["open"], "what is open is known at once"
    second = await house.coordinator.initialise(ID, TIMEOUT_MS)
    assert second == first._replace(epoch=1)
    assert set(house.coordinator.all()) == {"open", ID}


async def test_names_and_open_transactions_are_bounded(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRANSACTION_BYTES", 40_000)
    held = house.memory.metadata.used
    first = await house.coordinator.initialise("x" * 30_000, TIMEOUT_MS)
    with pytest.raises(TooManyTransactionsError):
        await house.coordinator.initialise("y" * 30_000, TIMEOUT_MS)
    house.now_ms += 3_600_001
    await house.coordinator.initialise("y" * 30_000, TIMEOUT_MS)
    work = house.coordinator.add_partitions("x" * 30_000, first, [1])
    assert await refused(work) is UnknownTransactionError
    house.now_ms += 3_600_001
    monkeypatch.setattr(limits, "OPEN_TRANSACTIONS", 2)
    one = await begun(house, 1)
    await begun(house, 1, name="two")
    for work in (begun(house, 1, name="three"), house.coordinator.begin(TIMEOUT_MS)):
        assert await refused(work) is TooManyTransactionsError
    await house.coordinator.end(ID, one, committed=True)
    monkeypatch.setattr(limits, "TRANSACTION_PARTS", 1)
    three = await begun(house, 1, name="three")
    work = house.coordinator.add_partitions("three", three, [2])
    assert await refused(work) is InvalidTransactionStateError
    house.now_ms += house.settings.id_expiration_ms + TIMEOUT_MS
    await house.coordinator.check_times()
    house.now_ms += house.settings.id_expiration_ms + TIMEOUT_MS
    await house.coordinator.check_times()
    assert (len(house.coordinator.all()), house.memory.metadata.used) == (0, held)


async def test_an_address_leaves_transactions_to_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way to begin one counts, once, and only until it has ended."""
    monkeypatch.setattr(limits, "ADDRESS_OPEN_TRANSACTIONS", 3)
    named = {name: await house.coordinator.initialise(name, TIMEOUT_MS) for name in ("a", "b", "c")}

    async def add(name: str, *partitions: int, address: str = "10.0.0.1") -> None:
        await house.coordinator.add_partitions(name, named[name], partitions, address)

    only = await house.coordinator.begin(TIMEOUT_MS, "10.0.0.1")
    await add("a", 1)
    await add("a", 2)
    await house.coordinator.add_name("b", named["b"], "group", address="10.0.0.1")
    by_name = house.coordinator.add_name("c", named["c"], "group", address="10.0.0.1")
    for work in (add("c", 1), by_name, house.coordinator.begin(TIMEOUT_MS, "10.0.0.1")):
        assert await refused(work) is TooManyTransactionsError
    await add("a", 3)
    await add("c", 1, address="10.0.0.2")
    await house.coordinator.end("", only, committed=True)
    await house.coordinator.begin(TIMEOUT_MS, "10.0.0.1")
    work = house.coordinator.begin(TIMEOUT_MS, "10.0.0.1")
    assert await refused(work) is TooManyTransactionsError
    house.now_ms += TIMEOUT_MS + 1
    await house.coordinator.check_times()
    await house.coordinator.begin(TIMEOUT_MS, "10.0.0.1")


async def test_others_go_on_while_many_transactions_are_looked_through(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In which time transactions begin and end."""
    monkeypatch.setattr(pace, "_FIRST_UNTIMED", 1)
    monkeypatch.setattr(pace, "_ELEMENTS_UNTIMED", 1)
    monkeypatch.setattr(pace, "_STEP_SECONDS", 0)
    for name in ("a", "b", "c"):
        await begun(house, 1, name=name)
    look = asyncio.ensure_future(house.coordinator.check_times())
    await asyncio.sleep(0)
    assert not look.done()
    await begun(house, 2, name="d")
    await look
    assert {state(house, name) for name in "abcd"} == {"Ongoing"}


async def test_a_client_that_leaves_changes_nothing(house: House) -> None:
    """What it asked for is decided as if it had stayed."""
    producer = await begun(house, 1)
    leaver = asyncio.ensure_future(house.coordinator.end(ID, producer, committed=True))
    await asyncio.sleep(0)
    leaver.cancel()
    async with asyncio.timeout(30):
        while state(house) != "CompleteCommit":
            await asyncio.sleep(0)
    assert house.partitions[1].visible() == [0]


async def test_requests_of_one_producer_are_in_turn(house: House) -> None:
    producer = await begun(house, 1)
    ended, added = await asyncio.gather(
        house.coordinator.end(ID, producer, committed=True),
        house.coordinator.add_partitions(ID, producer, [2]),
    )
    assert (ended, added) == (producer, None)
    found = house.coordinator.describe(ID)
    assert found is not None
    assert (found.row.state, found.partition_ids) == ("Ongoing", {2})


async def test_an_unknown_partition_is_refused_with_all_of_the_request(house: House) -> None:
    producer = await house.coordinator.initialise(ID, TIMEOUT_MS)
    with pytest.raises(UnknownPartitionError):
        await house.coordinator.add_partitions(ID, producer, [1, 99])
    assert state(house) == "Empty"


@pytest.mark.soak
async def test_a_hundred_thousand_ids_are_there_after_a_restart(house: House) -> None:
    """How many there may be is bounded by TRANSACTION_BYTES; those that are open are read first."""
    held = house.memory.metadata.used
    count = 100_000
    for begin in range(0, count, 500):
        names = [f"producer-{number}" for number in range(begin, begin + 500)]
        await asyncio.gather(*(house.coordinator.initialise(each, TIMEOUT_MS) for each in names))
    await begun(house, 1, name="open")
    used = house.memory.metadata.used - held
    assert count * 100 < used < limits.TRANSACTION_BYTES
    await house.coordinator.close()
    house.start()
    assert list(house.coordinator.all()) == ["open"], "nobody waits for the others"
    again = await house.coordinator.initialise("producer-77", TIMEOUT_MS)
    assert again.epoch == 1
    assert len(house.coordinator.all()) == count + 1
    assert house.memory.metadata.used - held == pytest.approx(used, rel=0.01)
