"""Batches are judged in one step as they are one after the other."""

from __future__ import annotations

from typing import Any

from compacted_batches import compact, headers, log_of, of_iggy, of_kafka, of_pulsar
from penstock.log.batches import whole_before
from penstock.log.header import Magic, walk
from penstock.log.reading import SharedFile
from penstock.log.scan import Bounds, sound_prefix
from penstock.records import judging
from penstock.records.kafka.control import end_marker
from stored_batches import Record

LOG = log_of(
    *(of_kafka([Record(b"1", b"a")]), of_kafka([Record(b"2" * 90, b"b"), Record(None, b"c")])),
    *(of_pulsar([Record(b"3", b"d")]), of_iggy([Record(b"4", b"e"), Record(b"5")])),
)
STARTS = [position for position, _ in walk(LOG)]
SOUND = Bounds(len(LOG), 6, 0)
FILE: Any = SharedFile.__new__(SharedFile)


def agree(data: bytes, base_offset: int, bounds: Bounds, end: int) -> int:
    """Return how many bytes are sound, which both say."""
    view = memoryview(data)
    found = judging.sound_prefix(FILE, view, base_offset, bounds, end)
    assert found == sound_prefix(FILE, view, base_offset, bounds, end)
    return len(found.data)


def test_sound_batches_are_found_up_to_an_end() -> None:
    ends = [agree(LOG, 0, SOUND, end) for end in range(7)]
    assert ends == [0, *STARTS[1:2], *[STARTS[2]] * 2, STARTS[3], *[len(LOG)] * 2]
    assert agree(LOG[: STARTS[1]], 0, SOUND, 6) == STARTS[1]
    assert agree(LOG[STARTS[2] : STARTS[3]], 3, SOUND, 6) > 0


def test_control_batches_are_of_no_encoding_of_their_own() -> None:
    kafka, pulsar = of_kafka([Record(b"1", b"a")]), of_pulsar([Record(b"2", b"b")])
    marker = bytes(end_marker(1, 0, committed=True, coordinator_epoch=0)), 1
    for batches, magic in (
        ((pulsar, marker, pulsar), Magic.PULSAR),
        ((marker, pulsar, marker), Magic.PULSAR),
        ((kafka, marker), Magic.KAFKA),
        ((marker, marker), Magic.KAFKA),
        ((pulsar, marker, kafka), None),
        ((), None),
    ):
        log = log_of(*batches)
        bounds = Bounds(len(log), len(batches), 0)
        agree(log, 0, bounds, len(batches))
        found = sound_prefix(FILE, memoryview(log), 0, bounds, len(batches))
        assert (len(found.data), found.magic) == (len(log), magic)
        assert whole_before(found, len(batches)) == found


def test_an_entry_with_marked_messages_is_for_nobody_as_it_is() -> None:
    batch = of_pulsar([Record(b"1", b"a"), Record(b"2", b"b"), Record(b"3", b"c")])
    pulsar, kafka = of_pulsar([Record(b"2", b"d")]), of_kafka([Record(b"4", b"b")])
    left = compact(log_of(batch, kafka))
    marked = left[: headers(left)[0].size], 3
    for batches in ((marked,), (marked, pulsar), (pulsar, marked), (kafka, marked)):
        log = log_of(*batches)
        end = sum(count for _, count in batches)
        bounds = Bounds(len(log), end, 0)
        assert agree(log, 0, bounds, end) == len(log)
        found = sound_prefix(FILE, memoryview(log), 0, bounds, end)
        assert found.magic is None
        assert whole_before(found, end) == found


def test_a_batch_that_is_cut_off_or_out_of_its_bounds_is_not_sound() -> None:
    for size in range(len(LOG)):
        assert agree(LOG[:size], 0, SOUND, 6) == max(at for at in [*STARTS, 0] if at <= size)
    assert agree(LOG, 1, SOUND, 6) == 0
    assert agree(LOG, 0, SOUND._replace(end_offset=2), 6) == STARTS[1]
    assert agree(LOG, 0, SOUND._replace(leader_epoch=-1), 6) == 0


def test_any_flipped_bit_is_seen() -> None:
    for bit in range(8 * len(LOG)):
        damaged = bytearray(LOG)
        damaged[bit // 8] ^= 1 << bit % 8
        last = max(at for at in STARTS if at <= bit // 8)
        assert agree(bytes(damaged), 0, SOUND, 6) == last
