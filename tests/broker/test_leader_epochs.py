"""Where each leader epoch ended, which tells a client whether a log is still the one it read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.topics import leader_epochs
from penstock.broker.topics.leader_epochs import UNKNOWN_EPOCH, EpochEnd, LeaderEpochs
from penstock.log.header import BatchHeader, Magic


def batch(epoch: int, offset: int) -> BatchHeader:
    return BatchHeader(offset, 49, epoch, Magic.KAFKA, 0, 0, 0, 0, 0, -1, -1, -1, 1)


def history(*batches: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for epoch, offset in batches:
        epochs.update(batch(epoch, offset))
    return epochs


def test_an_epoch_ends_where_the_next_known_one_begins() -> None:
    epochs = history((0, 0), (0, 5), (1, 10), (3, 20), (3, 25), (7, 30))
    answers = {
        0: (0, 10),
        1: (1, 20),
        2: (1, 20),
        3: (3, 30),
        4: (3, 30),
        6: (3, 30),
        7: (7, 99),
    }
    assert {epoch: epochs.end_of(epoch, 99) for epoch in answers} == answers


@pytest.mark.parametrize("epoch", [-2, -1, 8, 1 << 31])
def test_what_no_owner_has_had_is_unknown(epoch: int) -> None:
    assert history((0, 0), (7, 30)).end_of(epoch, 99) == UNKNOWN_EPOCH
    assert LeaderEpochs().end_of(epoch, 0) == UNKNOWN_EPOCH


def test_what_came_before_the_first_known_epoch_ended_where_that_begins() -> None:
    assert history((5, 100), (6, 200)).end_of(3, 999) == EpochEnd(3, 100)


def test_an_epoch_without_a_batch_leaves_nothing_behind() -> None:
    epochs = history((0, 0))
    epochs.begin(1, 10)
    assert epochs.end_of(1, 10) == EpochEnd(1, 10)
    epochs.begin(2, 10)
    epochs.begin(3, 10)
    assert len(epochs) == 2
    assert epochs.end_of(2, 12) == EpochEnd(0, 10)
    assert epochs.end_of(3, 12) == EpochEnd(3, 12)


def test_the_epoch_that_begins_is_the_one_of_its_batches() -> None:
    epochs = LeaderEpochs()
    epochs.begin(4, 0)
    for offset in range(3):
        epochs.update(batch(4, offset))
    epochs.begin(4, 3)
    assert len(epochs) == 1
    assert epochs.end_of(4, 3) == EpochEnd(4, 3)


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_epochs, "LEADER_EPOCHS", 3)
    epochs = history(*((number, 10 * number) for number in range(5)))
    assert len(epochs) == 3
    assert epochs.end_of(0, 99) == EpochEnd(0, 20)
    assert epochs.end_of(2, 99) == EpochEnd(2, 30)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.data())
def test_snapshot_and_replay_give_the_history_back(steps: list[int], data: st.DataObject) -> None:
    written = [batch(sum(steps[: at + 1]), at) for at in range(len(steps))]
    cut = data.draw(st.integers(0, len(written)))
    whole, before, after = LeaderEpochs(), LeaderEpochs(), LeaderEpochs()
    for header in written:
        whole.update(header)
    for header in written[:cut]:
        before.update(header)
    list(after.restore(before.snapshot()))
    for header in written[cut:]:
        after.update(header)
    assert after.snapshot() == whole.snapshot()
    for epoch in range(sum(steps) + 1):
        known = [each.leader_epoch for each in written if each.leader_epoch <= epoch]
        later = [each.base_offset for each in written if each.leader_epoch > epoch]
        expected = EpochEnd(max(known, default=epoch), min(later, default=len(written)))
        assert after.end_of(epoch, len(written)) == expected


def test_the_empty_snapshot_is_the_empty_history() -> None:
    epochs = history((1, 1))
    list(epochs.restore(b""))
    assert len(epochs) == 0


def test_a_snapshot_that_can_not_be_one_is_refused_and_changes_nothing() -> None:
    epochs = history((1, 0), (2, 10))
    good = epochs.snapshot()
    swapped = good[:5] + good[17:] + good[5:17]
    for bad in (good[:-1], good + b"\0", b"\xff" + good[1:], good[:3], good[:17], swapped):
        with pytest.raises(ValueError, match="snapshot of"):
            list(epochs.restore(bad))
    assert epochs.snapshot() == good
