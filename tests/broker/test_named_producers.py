"""Goal: a message of a producer with a name is recognised when it comes again, after all that can
happen to a log. Method: headers in, sequence numbers out.
"""

from __future__ import annotations

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


def written(kept_below: int, *sequences: int) -> NamedProducers:
    made = states()
    for offset, sequence in enumerate(sequences):
        made.wrote(header(sequence, offset), offset, min(kept_below, offset))
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
        producers.wrote(header(offset, offset), offset, kept_below=offset - 3)
    found = producers.last(ME)
    assert found is not None
    assert len(found._before) <= 40
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
        producers.wrote(header(offset, offset), offset, Counted(0))
    assert 0 < looked_at < 20_000
    producers.cut(1)
    assert last(producers) == (0, 0)


def test_a_snapshot_brings_all_back() -> None:
    producers = written(0, 5, 1 << 40)
    producers.update(header(3, 9, key=id_of_name("other")))
    again = states()
    again.restore(producers.snapshot())
    assert last(again) == (1 << 40, 1)
    assert last(again, id_of_name("other")) == (3, 9)
    again.restore(b"")
    assert len(again) == 0


@pytest.mark.parametrize("damage", [b"\x01", b"\x02\0\0\0\0", b"\x01\0\0\0\x01"])
def test_what_is_no_snapshot_changes_nothing(damage: bytes) -> None:
    producers = written(0, 5)
    with pytest.raises(ValueError, match="snapshot"):
        producers.restore(damage)
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
