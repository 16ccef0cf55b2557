from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.log.header import ATTRIBUTE_TRANSACTIONAL, Magic, build_header, stamp
from penstock.pipeline.logs.audit import AuditError, LogAudit, log_audit, segments_of
from penstock.pipeline.logs.segment_check import check_segment
from penstock.records.kafka.control import end_marker


def batch(
    offset: int, count: int = 3, *, producer: int = -1, sequence: int = -1, attributes: int = 0
) -> bytes:
    body = b"b" * 40
    header = build_header(
        Magic.KAFKA,
        body,
        record_count=count,
        base_timestamp=1000,
        max_timestamp=1000,
        attributes=attributes,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence,
    )
    stamp(header, offset, 0)
    return bytes(header) + body


def end(offset: int, producer: int) -> bytes:
    marker = end_marker(producer, 0, committed=True, coordinator_epoch=0)
    stamp(marker, offset, 0)
    return bytes(marker)


def log(folder: Path, segments: dict[int, Sequence[bytes]]) -> Path:
    directory = folder / "topics" / "id" / "0"
    directory.mkdir(parents=True)
    (directory / "penstock.json").write_text(json.dumps({"topic": "orders", "index": 0}))
    topic = {"tenant": "acme", "namespace": "shop", "topic": "orders"}
    (directory.parent / "penstock.json").write_text(json.dumps(topic))
    for base, batches in segments.items():
        (directory / f"{base:020d}.log").write_bytes(b"".join(batches))
    return directory


def audited(folder: Path, segments: dict[int, Sequence[bytes]]) -> LogAudit:
    directory = log(folder, segments)
    return log_audit(directory, [check_segment(directory, base) for base in segments])


def test_a_sound_log_has_nothing_wrong(tmp_path: Path) -> None:
    found = audited(tmp_path, {6: [batch(6), batch(9)], 12: [batch(12)], 15: [batch(15)]})
    assert found.is_sound
    assert (found.topic, found.start, found.end, found.records) == ("acme/shop/orders", 6, 18, 12)
    assert (found.segments, found.batches, found.torn_bytes, found.open) == (3, 4, 0, {})


def test_a_log_whose_topic_says_nothing_has_the_name_that_it_was_made_with(tmp_path: Path) -> None:
    directory = log(tmp_path, {0: [batch(0)]})
    for said in ("", "[]", "{}"):
        (directory.parent / "penstock.json").write_text(said)
        assert log_audit(directory, []).topic == "orders"


def test_a_flipped_bit_is_found_with_its_place(tmp_path: Path) -> None:
    damaged = bytearray(batch(3))
    damaged[-1] ^= 1
    found = audited(tmp_path, {0: [batch(0), bytes(damaged), batch(6)], 9: [batch(9)]})
    size = len(damaged)
    assert found.damage == [
        f"offsets 3 up to 6 are damaged: bytes {size} to {2 * size} of {0:020d}.log"
    ]
    assert (found.records, found.end) == (9, 12)


def test_what_no_segment_holds_is_missing(tmp_path: Path) -> None:
    found = audited(tmp_path, {0: [batch(0)], 3: [batch(3)], 9: [batch(9)]})
    # Only the next segment's name says that something was to follow.
    assert found.damage == ["offsets 6 up to 9 are missing: no segment holds them"]


def test_an_end_that_is_being_written_is_no_damage(tmp_path: Path) -> None:
    found = audited(tmp_path, {0: [batch(0), batch(3)[:70]]})
    assert found.is_sound
    assert (found.end, found.torn_bytes) == (3, 70)


def test_what_was_written_twice_is_found(tmp_path: Path) -> None:
    batches = [batch(3 * i, producer=7, sequence=each) for i, each in enumerate((0, 3, 3, 6))]
    assert audited(tmp_path, {0: batches}).damage == ["offset 6 was written before"]


def test_sequences_may_leave_some_out_and_begin_anew(tmp_path: Path) -> None:
    sequences = (0, 9, (1 << 31) - 3, 0, 3)
    batches = [batch(3 * i, producer=7, sequence=each) for i, each in enumerate(sequences)]
    assert audited(tmp_path, {0: batches}).is_sound


def test_transactions_may_end_in_a_later_segment(tmp_path: Path) -> None:
    data = [batch(3 * i, producer=i, attributes=ATTRIBUTE_TRANSACTIONAL) for i in range(3)]
    found = audited(tmp_path, {0: data, 9: [end(9, 1), end(10, 0)], 11: [batch(11)]})
    assert found.is_sound
    assert found.open == {2: 6}


def test_a_folder_that_is_no_data_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="is no data folder of a broker"):
        segments_of(tmp_path)


def test_all_segments_are_found(tmp_path: Path) -> None:
    directory = log(tmp_path, {0: [batch(0)], 3: [batch(3)]})
    found = segments_of(tmp_path)
    assert [(each.directory, each.base) for each in found] == [(directory, 0), (directory, 3)]
    assert all(each.size == len(batch(0)) for each in found)
