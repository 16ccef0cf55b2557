"""Goal: no retry is written twice and no gap goes unseen. Method: headers in, verdicts out."""

from __future__ import annotations

import struct
import tracemalloc
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import limits
from penstock.broker.errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
    TooManyProducersError,
)
from penstock.broker.producers.idempotence import (
    BATCHES_REMEMBERED,
    SEQUENCES,
    Duplicate,
    ProducerStates,
)
from penstock.limits import PRODUCERS_REMEMBERED
from penstock.log.header import BatchHeader, Magic
from penstock.memory import Memory


def states_of(memory: Memory | None = None) -> ProducerStates:
    return ProducerStates((memory or Memory()).producers)


def batch(
    sequence: int, count: int = 1, *, offset: int = 0, pid: int = 7, epoch: int = 0
) -> BatchHeader:
    return BatchHeader(
        offset, 49, 0, Magic.KAFKA, 0, 0, count - 1, 0, 0, pid, epoch, sequence, count
    )


def written(*headers: BatchHeader) -> ProducerStates:
    states = states_of()
    for header in headers:
        assert states.check(header) is None
        states.update(header)
    return states


def test_sequences_that_follow_are_accepted() -> None:
    states = written(batch(0, 3), batch(3, 2, offset=3))
    assert states.check(batch(5)) is None


def test_unknown_producer_may_start_anywhere() -> None:
    assert states_of().check(batch(1234)) is None


@pytest.mark.parametrize("sequence", [0, 4, 6, SEQUENCES - 1])
def test_gap_is_refused(sequence: int) -> None:
    with pytest.raises(OutOfOrderSequenceError):
        written(batch(0, 5)).check(batch(sequence))


def test_each_of_the_last_five_batches_is_a_duplicate_with_its_own_offset() -> None:
    states = written(*(batch(n, offset=100 + n) for n in range(7)))
    for n in range(2, 7):
        assert states.check(batch(n)) == Duplicate(100 + n)
    with pytest.raises(OutOfOrderSequenceError):
        states.check(batch(1))


def test_same_first_sequence_with_another_count_is_no_duplicate() -> None:
    with pytest.raises(OutOfOrderSequenceError):
        written(batch(0, 2)).check(batch(0, 3))


def test_sequence_wraps_to_zero() -> None:
    last = SEQUENCES - 1
    states = written(batch(last - 1, 4, offset=9))
    assert states.check(batch(last - 1, 4)) == Duplicate(9)
    assert states.check(batch(2)) is None
    assert written(batch(last)).check(batch(0)) is None


def test_old_epoch_is_fenced() -> None:
    with pytest.raises(InvalidProducerEpochError):
        written(batch(0, epoch=3)).check(batch(1, epoch=2))


def test_new_epoch_starts_at_zero() -> None:
    states = written(batch(0, epoch=3))
    with pytest.raises(OutOfOrderSequenceError):
        states.check(batch(1, epoch=4))
    fresh = batch(0, epoch=4, offset=8)
    assert states.check(fresh) is None
    states.update(fresh)
    assert states.check(fresh) == Duplicate(8)
    with pytest.raises(InvalidProducerEpochError):
        states.check(batch(1, epoch=3))


def test_batches_without_a_producer_id_leave_no_trace() -> None:
    states = written(batch(-1, pid=-1), batch(-1, pid=-1))
    assert len(states) == 0


def test_the_producer_that_wrote_longest_ago_is_forgotten_first() -> None:
    states = states_of()
    for pid in range(PRODUCERS_REMEMBERED):
        states.update(batch(0, pid=pid))
    states.update(batch(1, pid=0))
    states.update(batch(0, pid=PRODUCERS_REMEMBERED))
    assert len(states) == PRODUCERS_REMEMBERED
    assert states.check(batch(1, pid=0)) is not None
    with pytest.raises(TooManyProducersError):  # As a new one.
        states.check(batch(99, pid=1))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=40
    ),
    st.data(),
)
def test_snapshot_and_replay_give_the_state_back(
    writes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    history, following = [], dict[tuple[int, int], int]()
    for offset, (pid, epoch, count) in enumerate(writes):
        sequence = following.get((pid, epoch), 0)
        following[pid, epoch] = sequence + count
        history.append(batch(sequence, count, offset=offset, pid=pid, epoch=epoch))
    cut = data.draw(st.integers(0, len(history)))
    whole, before, after = states_of(), states_of(), states_of()
    for header in history:
        whole.update(header)
    for header in history[:cut]:
        before.update(header)
    list(after.restore(before.snapshot()))
    for header in history[cut:]:
        after.update(header)
    assert after.snapshot() == whole.snapshot()


def test_empty_snapshot_is_the_empty_state() -> None:
    states = written(batch(0))
    list(states.restore(b""))
    assert len(states) == 0


@pytest.mark.parametrize("version", [1, 2])
def test_a_snapshot_of_an_earlier_version_is_read(version: int) -> None:
    states = written(batch(0), batch(1, 3, offset=5))
    producer_id, epoch = batch(0).producer_id, batch(0).producer_epoch
    coordinator = b"" if version == 1 else (-1).to_bytes(4, signed=True)
    before = struct.pack(">BIqh", version, 1, producer_id, epoch) + coordinator
    before += struct.pack(">Biiqiiq", 2, 0, 0, 0, 1, 3, 5)
    again = ProducerStates(Memory().producers)
    list(again.restore(before))
    assert again.snapshot() == states.snapshot()


def test_many_are_restored_in_steps_of_one_each() -> None:
    states = ProducerStates(Memory().producers)
    for number in range(100):
        states.update(batch(0, pid=number, offset=number))
    again = written(batch(0))
    before = again.snapshot()
    unfinished = [again.snapshot() for _ in again.restore(states.snapshot())]
    assert unfinished == 100 * [before], "it is what it was before the last step"
    assert again.snapshot() == states.snapshot()


def test_damaged_snapshot_is_refused_and_changes_nothing() -> None:
    states = written(batch(0), batch(1))
    good = states.snapshot()
    six = good[:19] + bytes([BATCHES_REMEMBERED + 1]) + good[20:]
    for bad in (good[:-1], good + b"\0", b"\xff" + good[1:], good[:3], six):
        with pytest.raises(ValueError, match="snapshot of producers"):
            list(states.restore(bad))
    assert states.snapshot() == good


# Batches that could not be written


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans(), st.integers(0, 8)),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 40),
)
@settings(max_examples=300, deadline=None)
def test_what_is_taken_back_was_never_there(
    sent: list[tuple[int, int, bool, int]], kept: int
) -> None:
    """Producers write and begin new epochs; what is behind is judged as if the rest never came."""
    epochs: dict[int, int] = {}
    sequences: dict[int, int] = {}
    headers: list[BatchHeader] = []
    offset = 0
    for count, pid, has_new_epoch, _ in sent:
        if has_new_epoch:
            epochs[pid], sequences[pid] = epochs.get(pid, 0) + 1, 0
        sequence = sequences.get(pid, 0)
        epoch = epochs.get(pid, 0)
        headers.append(batch(sequence, count, offset=offset, pid=pid, epoch=epoch))
        sequences[pid] = sequence + count
        offset += count
    kept = min(kept, len(headers))
    states = states_of()
    written_to = 0
    for number, header in enumerate(headers):
        # Now and then all that was sent is written, but never what is taken back.
        if sent[number][3] == 0:
            written_to = header.base_offset if number <= kept else written_to
        assert states.check(header) is None
        states.appended(header, header.base_offset, written_to)
    states.cut(headers[kept].base_offset if kept < len(headers) else offset)
    expected = written(*headers[:kept])
    for number, header in enumerate(headers):
        found = verdict(states, header)
        # More than five may be remembered of those that could have been taken back.
        is_known = number < kept and found == Duplicate(header.base_offset)
        assert is_known or found == verdict(expected, header)
    assert len(states) == len(expected)


def verdict(states: ProducerStates, header: BatchHeader) -> object:
    try:
        found = states.check(header)
    except (OutOfOrderSequenceError, InvalidProducerEpochError) as error:
        return type(error)
    return found


def test_a_snapshot_holds_no_more_than_the_last_five() -> None:
    states = states_of()
    for number in range(50):
        states.update(batch(number, offset=number), 0)
    again = states_of()
    list(again.restore(states.snapshot()))
    assert again.check(batch(45)) == Duplicate(45)
    with pytest.raises(OutOfOrderSequenceError):
        again.check(batch(44))


# The node's memory


def fill(states: ProducerStates, first: int) -> int:
    """Have new producers write until one is refused; return how many did."""
    for count in range(PRODUCERS_REMEMBERED + 1):
        header = batch(0, pid=first + count)
        try:
            states.check(header)
        except TooManyProducersError:
            return count
        states.update(header)
    pytest.fail("no producer was refused")


def test_a_producer_takes_little() -> None:
    states = states_of()
    tracemalloc.start()
    for number in range(5_000):
        for sequence in range(7):
            states.update(batch(sequence, offset=7 * number + sequence, pid=number))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 5_000 * 700


def test_new_producers_are_refused_where_there_is_no_room() -> None:
    memory = Memory(16 << 20)
    first, second = states_of(memory), states_of(memory)
    count = fill(first, 0)
    assert memory.producers.used < memory.producers.bound
    assert limits.PRODUCERS_LEAST <= fill(second, 10**6) < count, "some is left for the next one"
    for pid in range(count):
        assert first.check(batch(1, pid=pid)) is None, "who is known goes on"
    first.close()
    assert second.check(batch(0, pid=10**7)) is None


def test_no_active_producer_is_forgotten_for_a_new_one() -> None:
    states = states_of(Memory(1 << 30))
    assert fill(states, 0) == PRODUCERS_REMEMBERED
    assert states.check(batch(0, pid=0)) == Duplicate(0)


def test_idle_producers_of_all_partitions_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("penstock.broker.producers.idempotence.time", clock)
    monkeypatch.setattr("penstock.broker.producers.remembered.time", clock)
    memory = Memory(16 << 20)
    first, second = states_of(memory), states_of(memory)
    fill(first, 0)
    now = limits.PRODUCER_IDLE_SECONDS + 1
    active = fill(second, 10**6)
    assert active > limits.PRODUCERS_LEAST, "others forgot theirs"
    assert len(first) == 0
    assert second.check(batch(0, pid=10**6)) is not None, "who is active is not forgotten"
    now *= 2
    assert second.check(batch(0, pid=10**7)) is None
    assert len(second) == 0
