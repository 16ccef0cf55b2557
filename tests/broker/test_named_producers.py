"""Goal: a message of a producer with a name is recognised when it comes again, after all that can
happen to a log. Method: headers in, sequence numbers out.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import ItemsView
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import limits
from penstock.broker.errors import TooManyProducersError
from penstock.broker.producers.named import (
    SEQUENCES,
    NamedProducer,
    NamedProducers,
    epoch_and_sequence,
    id_of_name,
)
from penstock.log.header import (
    NO_PRODUCER_ID,
    BatchHeader,
    Magic,
    build_header,
    read_header,
    stamp,
)
from penstock.memory import Memory
from penstock.records.pulsar.entry import Numbers

ME = id_of_name("me")


def header(sequence: int, offset: int, key: int = ME) -> BatchHeader:
    epoch, low = epoch_and_sequence(sequence)
    batch = build_header(
        Magic.PULSAR,
        b"",
        record_count=1,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=key,
        producer_epoch=epoch,
        base_sequence=low,
    )
    stamp(batch, offset, 1)
    return read_header(batch)


def states(memory: Memory | None = None) -> NamedProducers:
    return NamedProducers((memory or Memory()).producers)


def one(sequence: int) -> Numbers:
    return Numbers.of(sequence, 0, 1)


def written(kept_below: int, *sequences: int) -> NamedProducers:
    made = states()
    for offset, sequence in enumerate(sequences):
        made.remember(ME, one(sequence), offset, min(kept_below, offset))
    return made


def last(producers: NamedProducers, key: int = ME) -> tuple[int, int] | None:
    found = producers.last(key)
    return None if found is None else (found.sequence, found.offset)


@given(st.integers(min_value=0, max_value=SEQUENCES - 1))
def test_a_header_has_room_for_a_sequence_number(sequence: int) -> None:
    producers = states()
    producers.update(header(sequence, 7))
    assert last(producers) == (sequence, 7)


def test_numbers_of_names_are_below_those_of_producers_without_one() -> None:
    numbers = {id_of_name(f"name-{number}") for number in range(1000)}
    assert len(numbers) == 1000
    assert all(-(1 << 63) <= number < NO_PRODUCER_ID for number in numbers)


def test_batches_without_a_name_change_nothing() -> None:
    producers = states()
    producers.update(header(1, 0, key=NO_PRODUCER_ID))
    producers.update(header(1, 0, key=17))
    assert len(producers) == 0


def test_what_was_taken_back_may_come_again() -> None:
    producers = written(2, 10, 11, 12, 13, 14)
    producers.cut(3)
    assert last(producers) == (12, 2)
    producers.cut(3)
    assert last(producers) == (12, 2)
    producers.cut(0)
    assert last(producers) is None
    assert len(producers) == 0


def test_only_what_may_be_taken_back_is_kept() -> None:
    producers = states()
    for offset in range(10_000):
        producers.remember(ME, one(offset), offset, kept_below=offset - 3)
    found = producers.last(ME)
    assert found is not None
    assert len(found._before) <= 60
    producers.cut(9_998)
    assert last(producers) == (9_997, 9_997)


def test_many_on_their_way_to_the_disk_are_settled_now_and_then() -> None:
    """Settling looks at all of them, so it must not be done for each."""
    looked_at = 0

    class Counted(int):
        def __le__(self, other: int) -> bool:
            nonlocal looked_at
            looked_at += 1
            return int(self) <= other

    producers = states()
    for offset in range(5_000):
        producers.remember(ME, one(offset), offset, Counted(0))
    assert 0 < looked_at < 20_000
    producers.cut(1)
    assert last(producers) == (0, 0)


def test_a_snapshot_brings_all_back() -> None:
    producers = written(0, 5, 1 << 40)
    producers.update(header(3, 9, key=id_of_name("other")))
    again = states()
    list(again.restore(producers.snapshot()))
    assert last(again) == (1 << 40, 1)
    assert last(again, id_of_name("other")) == (3, 9)
    list(again.restore(b""))
    assert len(again) == 0


def test_the_first_snapshots_had_passed_all_up_to_the_highest() -> None:
    producers = states()
    list(producers.restore(struct.pack(">BIqqq", 1, 1, ME, 7, 3)))
    found = producers.last(ME)
    assert found is not None
    assert (found.sequence, found.passed, found.offset) == (7, 7, 3)


class Client:
    """A producer that puts ten messages at a time into batches by their keys."""

    def __init__(self, keys: list[int], *, says_highest: bool) -> None:
        self.batches: list[list[int]] = []
        for start in range(0, len(keys), 10):
            by_key: dict[int, list[int]] = {}
            for number, key in enumerate(keys[start : start + 10], start):
                by_key.setdefault(key, []).append(number)
            self.batches += sorted(by_key.values())
        self.says_highest = says_highest

    def numbers(self, batch: list[int]) -> Numbers:
        highest = batch[-1] if self.says_highest and len(batch) > 1 else 0
        return Numbers.of(batch[0], highest, len(batch))


@given(
    keys=st.lists(st.integers(min_value=0, max_value=4), min_size=1, max_size=60),
    says_highest=st.booleans(),
    breaks=st.lists(st.integers(min_value=0, max_value=60), max_size=4),
    restarts=st.booleans(),
)
def test_batches_by_key_are_written_once_however_often_their_connection_breaks(
    keys: list[int], says_highest: bool, breaks: list[int], restarts: bool
) -> None:
    client = Client(keys, says_highest=says_highest)
    producers = states()
    stored: list[list[int]] = []

    def send(batch: list[int]) -> None:
        known, numbers = producers.last(ME), client.numbers(batch)
        if known is None or not known.has(numbers, come_with=-1):
            producers.remember(ME, numbers, len(stored), len(stored))
            stored.append(batch)

    for place, batch in enumerate(client.batches):
        send(batch)
        if place in breaks:  # No receipt came: all of the last ones come again.
            if restarts:
                snapshot = producers.snapshot()
                producers = states()
                list(producers.restore(snapshot))
            for again in client.batches[max(0, place - 7) : place + 1]:
                send(again)
    assert stored == client.batches


@pytest.mark.parametrize(
    ("numbers", "there"),
    [
        (Numbers.of(10, 14, 5), True),
        (Numbers.of(12, 0, 1), True),
        (Numbers.of(8, 0, 1), True),
        (Numbers.of(12, 15, 4), False),
        (Numbers.of(15, 0, 1), False),
    ],
)
def test_a_batch_that_says_all_of_its_numbers_has_passed_them(
    numbers: Numbers, there: bool
) -> None:
    producers = states()
    producers.remember(ME, Numbers.of(10, 14, 5), 0, 0)
    known = producers.last(ME)
    assert known is not None
    assert known.has(numbers, come_with=-1) == there
    assert not known.has(Numbers.of(16, 0, 1), come_with=14)


def test_who_comes_anew_writes_nothing_up_to_the_highest() -> None:
    producers = states()
    producers.remember(ME, Numbers.of(0, 5, 2), 0, 0)
    known = producers.last(ME)
    assert known is not None
    assert not known.has(one(3), come_with=-1)
    assert known.has(one(3), come_with=known.sequence)


@pytest.mark.parametrize("damage", [b"\x02", b"\x03\0\0\0\0", b"\x02\0\0\0\x01"])
def test_what_is_no_snapshot_changes_nothing(damage: bytes) -> None:
    producers = written(0, 5)
    with pytest.raises(ValueError, match="snapshot"):
        list(producers.restore(damage))
    assert last(producers) == (5, 0)


def test_those_that_are_not_idle_are_not_looked_at_for_each_that_finds_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, looks = 1_000.0, 0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("penstock.broker.producers.named.time", clock)
    monkeypatch.setattr(limits, "PRODUCERS_LEAST", 0)
    producers = states(Memory(1))
    for number in range(100):
        producers.update(header(1, number, key=number - 5_000))

    class Counted(OrderedDict[int, NamedProducer]):
        def items(self) -> ItemsView[int, NamedProducer]:
            nonlocal looks
            looks += 1
            return super().items()

    producers._producers = Counted(producers._producers)
    now += limits.PRODUCER_IDLE_SECONDS / 2
    for _ in range(50):
        with pytest.raises(TooManyProducersError):
            producers.check_room(ME)
    assert (len(producers), looks) == (100, 1)
    now += limits.PRODUCER_IDLE_SECONDS
    producers.forget_idle()
    assert len(producers) == 0


def test_there_is_room_for_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PRODUCERS_LEAST", 2)
    memory = Memory(1 << 20)
    producers, others = states(memory), states(memory)
    refused = 0
    for number in range(3_000):
        try:
            others.check_room(number - 5_000)
        except TooManyProducersError:
            refused += 1
        else:
            others.update(header(1, number, key=number - 5_000))
    assert 0 < refused < 3_000
    producers.check_room(ME)
    producers.update(header(1, 0))
    producers.check_room(ME)
    for key in range(-5_000, -2_000):
        others.forget(key)
    assert len(others) == 0
    others.check_room(ME)
