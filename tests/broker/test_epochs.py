"""Goal: an epoch of many tasks is visible whole or not at all, and once, whatever comes between.

Method: as in test_transactions. A task writes its own number; a crash comes at each step of a
commit, and the writer does all of it again, as Spark does.
"""

from __future__ import annotations

import asyncio

import pytest

from penstock import limits
from penstock.broker.errors import (
    InvalidEpochError,
    InvalidTransactionStateError,
    InvalidWriterError,
    ProducerFencedError,
    TooManyTransactionsError,
    UnknownTransactionError,
)
from penstock.broker.transactions.epochs import NO_EPOCH, Decided
from penstock.broker.transactions.states import Producer
from penstock.log.errors import LogFailedError
from penstock.metadata.errors import MetadataError
from transaction_house import TIMEOUT_MS, House, refused

WRITER = "query"
TASKS = range(3)


def task_id(task: int, writer: str = WRITER, attempt: int = 0) -> str:
    return f"penstock-writer/{writer}/{task}.{attempt}"


async def write(house: House, value: int, name: str, *partitions: int) -> Producer:
    producer = await house.coordinator.initialise(name, TIMEOUT_MS)
    await house.coordinator.add_partitions(name, producer, partitions)
    for each in partitions:
        house.write(producer, each, value)
    return producer


async def written(house: House, epoch: int, writer: str = WRITER) -> dict[str, Producer]:
    """What the tasks of an epoch wrote, task by task, each to two partitions."""
    return {
        task_id(task, writer): await write(
            house, epoch * 10 + task, task_id(task, writer), 1 + task, 4
        )
        for task in TASKS
    }


def visible(house: House) -> list[int]:
    return sorted(house.partitions[4].visible())


async def test_an_epoch_is_visible_once_it_is_committed(house: House) -> None:
    first = await written(house, 0)
    assert visible(house) == []
    assert (await house.epochs.commit(WRITER, 0, first)).written
    assert visible(house) == [0, 1, 2]
    assert [house.partitions[each].visible() for each in (1, 2, 3)] == [[0], [1], [2]]
    assert (await house.epochs.commit(WRITER, 5, await written(house, 5))).written
    assert visible(house) == [0, 1, 2, 50, 51, 52]
    assert await house.epochs.seen(WRITER) == 5
    assert (await house.epochs.commit(WRITER, 6, {})).written
    assert await house.epochs.seen(WRITER) == 6
    assert await house.epochs.seen("another") == NO_EPOCH


async def test_a_replayed_epoch_is_recognised_and_not_written_twice(house: House) -> None:
    await house.epochs.commit(WRITER, 3, await written(house, 3))
    for _ in range(2):
        await house.restart()
        again = await written(house, 3)
        assert not (await house.epochs.commit(WRITER, 3, again)).written
        assert visible(house) == [30, 31, 32]
        assert not house.coordinator.of_writer(WRITER), "what came again is aborted"
    for epoch in (2, -1):
        with pytest.raises(InvalidEpochError):
            await house.epochs.commit(WRITER, epoch, await written(house, 2))
    assert visible(house) == [30, 31, 32]


async def test_an_epoch_is_known_by_what_it_was_made_of(house: House) -> None:
    made = await house.epochs.commit(WRITER, 3, await written(house, 3), "of these")
    assert made == Decided(written=True, fingerprint="of these")
    for given in ("of these", "of others", ""):
        await house.restart()
        again = await house.epochs.commit(WRITER, 3, await written(house, 3), given)
        assert again == Decided(written=False, fingerprint="of these"), "it is what was committed"
    assert visible(house) == [30, 31, 32]
    await house.epochs.commit(WRITER, 4, await written(house, 4))
    assert (await house.epochs.commit(WRITER, 4, {}, "of others")).fingerprint == ""
    too_long = "x" * (limits.FINGERPRINT_CHARACTERS + 1)
    assert await refused(house.epochs.commit(WRITER, 5, {}, too_long)) is InvalidEpochError


async def test_a_late_replay_leaves_the_next_epoch_alone(house: House) -> None:
    first = await written(house, 1)
    await house.epochs.commit(WRITER, 1, first)
    following = await written(house, 2)
    assert not (await house.epochs.commit(WRITER, 1, first)).written
    assert (await house.epochs.commit(WRITER, 2, following)).written
    assert visible(house) == [10, 11, 12, 20, 21, 22]


async def test_what_other_attempts_left_is_aborted(house: House) -> None:
    await write(house, 99, task_id(1, attempt=1), 1, 4)
    others = await write(house, 77, task_id(1, "other"), 4)
    await house.epochs.commit(WRITER, 0, await written(house, 0))
    assert visible(house) == [0, 1, 2]
    assert not house.coordinator.of_writer(WRITER)
    assert len(house.coordinator.of_writer("other")) == 1, "another writer's is not"
    await house.epochs.commit("other", 0, {task_id(1, "other"): others})
    assert visible(house) == [0, 1, 2, 77]


async def test_whoever_wrote_in_an_epoch_can_not_go_on(house: House) -> None:
    producers = await written(house, 0)
    await house.epochs.commit(WRITER, 0, producers)
    name, producer = next(iter(producers.items()))
    again = house.coordinator.add_partitions(name, producer, [1])
    assert await refused(again) is ProducerFencedError


async def test_one_that_is_gone_spoils_all_of_an_epoch(house: House) -> None:
    producers = await written(house, 0)
    wrong = {
        ProducerFencedError: {task_id(0): producers[task_id(0)]._replace(epoch=9)},
        UnknownTransactionError: {task_id(8): Producer(5, 0)},
        InvalidWriterError: {"penstock-writer/query-2/0": Producer(5, 0)},
    }
    for error, entry in wrong.items():
        work = house.epochs.commit(WRITER, 0, {**producers, **entry})
        assert await refused(work) is error
        assert visible(house) == []
    idle = {task_id(7): await house.coordinator.initialise(task_id(7), TIMEOUT_MS)}
    work = house.epochs.commit(WRITER, 0, {**producers, **idle})
    assert await refused(work) is InvalidTransactionStateError
    assert await house.epochs.seen(WRITER) == NO_EPOCH
    await house.epochs.commit(WRITER, 0, producers)
    assert visible(house) == [0, 1, 2]


async def test_what_is_not_safe_or_not_stored_is_not_committed(house: House) -> None:
    producers = await written(house, 0)
    house.partitions[2].failure = LogFailedError("the disk is gone")
    assert await refused(house.epochs.commit(WRITER, 0, producers)) is LogFailedError
    house.partitions[2].failure = None
    house.database_fails = True
    assert await refused(house.epochs.commit(WRITER, 1, producers)) is MetadataError
    house.database_fails = False
    assert visible(house) == []
    assert (await house.epochs.commit(WRITER, 0, producers)).written
    assert visible(house) == [0, 1, 2]


async def test_all_of_a_writer_can_be_aborted(house: House) -> None:
    producers = await written(house, 0)
    await house.epochs.abort(WRITER)
    assert not house.coordinator.of_writer(WRITER)
    assert await refused(house.epochs.commit(WRITER, 0, producers)) is ProducerFencedError
    assert visible(house) == []


async def test_a_writer_at_work_may_take_as_long_as_it_wants(house: House) -> None:
    producers = await written(house, 0)
    for _ in range(3):
        house.now_ms += TIMEOUT_MS
        await house.epochs.seen(WRITER)
        await house.coordinator.check_times()
    house.now_ms += TIMEOUT_MS
    await house.restart()  # which took as long as one that says nothing would have had
    await house.coordinator.check_times()
    assert (await house.epochs.commit(WRITER, 0, producers)).written
    producers = await written(house, 1)
    house.now_ms += TIMEOUT_MS + 1
    await house.coordinator.check_times()
    assert await refused(house.epochs.commit(WRITER, 1, producers)) is ProducerFencedError
    assert visible(house) == [0, 1, 2]


async def commit_twice(house: House) -> None:
    """As Spark does: an epoch, and the next one."""
    for epoch in (0, 1):
        if await house.epochs.seen(WRITER) < epoch:
            await house.epochs.commit(WRITER, epoch, await written(house, epoch))


async def test_a_crash_at_any_step_neither_loses_nor_doubles_an_epoch(house: House) -> None:
    await commit_twice(house)
    total = house.steps
    assert total > 30
    for crash_at in range(1, total):
        fresh = House()
        fresh.start()
        fresh.crash_at = crash_at
        work = asyncio.ensure_future(commit_twice(fresh))
        frozen = asyncio.ensure_future(fresh.frozen.wait())
        await asyncio.wait([work, frozen], timeout=30, return_when=asyncio.FIRST_COMPLETED)
        await fresh.restart()
        # What was decided before the crash is visible when nothing is half done any more.
        await fresh.settled()
        assert visible(fresh) in ([], [0, 1, 2], [0, 1, 2, 10, 11, 12])
        await commit_twice(fresh)
        assert visible(fresh) == [0, 1, 2, 10, 11, 12]
        assert [fresh.partitions[each].visible() for each in (1, 2, 3)] == [
            [0, 10],
            [1, 11],
            [2, 12],
        ]
        await asyncio.gather(work, frozen, return_exceptions=True)
        await fresh.close()


@pytest.mark.parametrize("name", ["", "a/b", "x" * 201])
async def test_names_that_can_not_be_a_writers_are_refused(house: House, name: str) -> None:
    for work in (
        house.epochs.commit(name, 0, {}),
        house.epochs.seen(name),
        house.epochs.abort(name),
    ):
        assert await refused(work) is InvalidWriterError


async def test_writers_and_their_producers_are_bounded(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WRITERS", 3)
    monkeypatch.setattr(limits, "EPOCH_PRODUCERS", 2)
    too_many = {task_id(each): Producer(each, 0) for each in range(3)}
    assert await refused(house.epochs.commit(WRITER, 0, too_many)) is InvalidEpochError
    for each in range(3):
        await house.epochs.commit(f"w{each}", 0, {})
    assert await refused(house.epochs.commit("w3", 0, {})) is TooManyTransactionsError
    assert (await house.epochs.commit("w2", 1, {})).written
    house.now_ms += limits.TRANSACTIONAL_ID_IDLE_SECONDS * 1000 + 1
    assert (await house.epochs.commit("w3", 0, {})).written
    assert 0 < house.epochs._held.size < 1_000, "what was forgotten is given back"
    assert [await house.epochs.seen(f"w{each}") for each in range(4)] == [-1, -1, -1, 0]
    house.now_ms += house.settings.id_expiration_ms + 1
    await house.epochs.commit("w4", 0, {})
    await house.restart()
    assert [await house.epochs.seen(f"w{each}") for each in range(5)] == [-1, -1, -1, -1, 0]
