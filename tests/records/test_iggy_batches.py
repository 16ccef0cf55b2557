"""Iggy's batch: a recorded one, what is refused, the server's stamp, what becomes of headers."""

from __future__ import annotations

import struct

import pytest
from xxhash import xxh3_64_intdigest

from penstock import records
from penstock.log.header import Magic, walk
from penstock.records.iggy.batch import (
    IggyBatch,
    IggyBatchError,
    IggyFault,
    stamp_iggy_batch,
    verify_iggy_batch,
)
from stored_batches import TIME, Record, iggy_batch, iggy_body, join, kafka_batch, own, read

# One message that apache-iggy 0.9.0 sent: id 7, payload "hi", header k=v, and its server's stamp.
RECORDED = (
    bytes(24)
    + bytes.fromhex("37f5ae43c86006003e0100000000000005f32970421f87d201000000")
    + bytes(204)
    + bytes.fromhex("5b1a85ed3f52b17607" + "00" * 23 + "0c00000002000000" + "00" * 8)
    + bytes.fromhex("6869" + "02010000006b" + "020100000076")
)
STAMPED_AT = int.from_bytes(bytes.fromhex("59f8ae43c8600600"), "little")
STAMPED_CHECKSUM = "b34d1221154f6c61"
HOUR = 3_600_000_000


def test_a_recorded_batch() -> None:
    time = int.from_bytes(bytes.fromhex("37f5ae43c8600600"), "little")
    assert verify_iggy_batch(RECORDED) == IggyBatch(1, time, time)
    (record,) = read(records.decode(iggy_batch(RECORDED)))
    identity = (b"penstock.iggy.id", b"7".rjust(32, b"0"))
    assert record == Record(b"hi", None, ((b"k", b"v"), identity), time)


def test_the_stamp_is_what_the_recorded_server_wrote() -> None:
    body = bytearray(RECORDED)
    stamp_iggy_batch(body, 0, 0, STAMPED_AT)
    assert body[40:48].hex() == STAMPED_CHECKSUM
    stamp_iggy_batch(body, 3, 1 << 40, 7)
    assert struct.unpack_from("<QQQ", body) == (3, 1 << 40, 7)
    verify_iggy_batch(body)


def resealed(body: bytearray) -> bytes:
    """The batch of one message with both checksums made right again."""
    body[256:264] = xxh3_64_intdigest(bytes(body[264:])).to_bytes(8, "little")
    summed = bytes(body[:40] + body[48:52] + body[256:264])
    body[40:48] = xxh3_64_intdigest(summed).to_bytes(8, "little")
    return bytes(body)


def changed(at: int, *new: int, seal: bool = True) -> bytes:
    body = bytearray(iggy_body([Record(b"payload", None, ((b"k", b"v"),))]))
    body[at : at + len(new)] = bytes(new)
    return resealed(body) if seal else bytes(body)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", IggyFault.LAYOUT),
        (bytes(256), IggyFault.LAYOUT),
        (changed(100, 1), IggyFault.LAYOUT),
        (changed(31, 0x80), IggyFault.LAYOUT),
        (changed(48, 0), IggyFault.LAYOUT),
        (changed(48, 2), IggyFault.LAYOUT),
        (changed(256 + 40, 1), IggyFault.LAYOUT),
        (changed(256 + 36, 8), IggyFault.LAYOUT),
        (changed(256, 1, seal=False), IggyFault.FRAME_CHECKSUM),
        (changed(256 + 50, 1, seal=False), IggyFault.FRAME_CHECKSUM),
        (changed(16, 1, seal=False), IggyFault.BATCH_CHECKSUM),
        (changed(256 + 24, 1), IggyFault.OFFSET_DELTA),
        (changed(256 + 32, 19, 0, 0, 0, 0), IggyFault.EMPTY_PAYLOAD),
        (changed(256 + 48 + 7, 0), IggyFault.HEADER_KIND),
        (changed(256 + 48 + 7, 16), IggyFault.HEADER_KIND),
        (changed(256 + 48 + 8, 0), IggyFault.HEADER_KEY),
        (changed(256 + 48 + 8, 0xFF), IggyFault.HEADER_KEY),
        (changed(256 + 48 + 8, 2), IggyFault.HEADER_VALUE),
    ],
)
def test_what_is_refused(body: bytes, fault: IggyFault) -> None:
    with pytest.raises(IggyBatchError) as caught:
        verify_iggy_batch(body)
    assert caught.value.fault is fault


def test_what_is_written_for_iggy_clients_is_sound() -> None:
    written = [Record(b"a", b"key", ((b"h", b"1"), (b"h", None))), Record(b"b", b"k" * 300)]
    ((batch),) = records.convert(kafka_batch(written, 30), Magic.IGGY)
    body = bytes(batch)[61:]
    assert verify_iggy_batch(body) == IggyBatch(2, TIME, TIME)
    assert struct.unpack_from("<QQ", body) == (0, 30)
    assert b"penstock.key.0" not in body
    assert b"penstock.header.0.0" in body
    assert b"penstock.header.2" in body


def test_a_null_value_and_an_empty_one_differ() -> None:
    written = [Record(None), Record(b"")]
    converted = join(records.convert(kafka_batch(written), Magic.IGGY))
    assert converted.count(b"penstock.tombstone") == 1
    assert read(records.decode(converted)) == written


def test_a_tombstone_with_a_payload_is_a_header_like_others() -> None:
    stored = iggy_batch(iggy_body([Record(b"x", None, ((b"penstock.tombstone", b"\1"),))]))
    (record,) = read(records.decode(stored))
    assert (record.value, record.headers) == (b"x", ((b"penstock.tombstone", b"\1"),))


def test_a_second_tombstone_is_a_header() -> None:
    both = ((b"penstock.tombstone", b"\1"), (b"a", b"1"), (b"penstock.tombstone", b"2"))
    found = read(records.decode(iggy_batch(iggy_body([Record(b"", headers=both)]))))
    assert found == [Record(None, headers=both[1:])]


def test_a_second_key_is_a_header() -> None:
    stored = iggy_batch(iggy_body([Record(b"x", b"2", ((b"penstock.key", b"1"),))]))
    (record,) = read(records.decode(stored))
    assert (record.key, record.headers) == (b"1", ((b"penstock.key", b"2"),))


def test_times_too_far_apart_for_a_batch_become_several() -> None:
    times = [0, HOUR, 2 * HOUR, 100 * HOUR, 99 * HOUR, 99 * HOUR]
    written = [Record(b"v", time=TIME + time) for time in times]
    run = kafka_batch(written, 50) + kafka_batch([Record(b"w")], 56)
    converted = join(records.convert(run, Magic.IGGY))
    headers = [header for _, header in walk(converted)]
    assert [header.base_offset for header in headers] == [50, 52, 53, 56]
    assert [header.next_offset for header in headers] == [52, 53, 56, 57]
    assert [header.record_count for header in headers] == [2, 1, 3, 1]
    assert read(records.decode(converted)) == [*written, Record(b"w")]
    for position, header in walk(converted):
        verify_iggy_batch(converted[position + 61 : position + header.size])


def test_kinds_travel_and_come_back() -> None:
    written = [Record(b"v", None, ((b"n", b"number"), (b"t", b"text")))]
    stored = iggy_batch(iggy_body(written, kinds=0x22))
    for other, told in ((Magic.KAFKA, True), (Magic.PULSAR, False)):
        converted = join(records.convert(stored, other))
        (record,) = read(records.decode(converted))
        assert ((b"penstock.iggy.kinds", b"2222") in record.headers) == told
        back = records.decode(join(records.convert(converted, Magic.IGGY)))
        assert back.headers[4].tolist() == [0x22, 0x22]


@pytest.mark.parametrize("kinds", [b"", b"21", b"0021", b"2z21", b"2521", b"212121"])
def test_kinds_that_do_not_fit_are_a_header_like_others(kinds: bytes) -> None:
    headers = ((b"a", b"1"), (b"b", b"2"), (b"penstock.iggy.kinds", kinds))
    converted = join(records.convert(kafka_batch([Record(b"v", None, headers)]), Magic.IGGY))
    (record,) = read(records.decode(converted))
    assert record.headers == headers


def test_an_id_that_is_none_is_a_header_like_others() -> None:
    headers = ((b"penstock.iggy.id", b"7"),)
    converted = join(records.convert(kafka_batch([Record(b"v", None, headers)]), Magic.IGGY))
    assert own(read(records.decode(converted))) == [Record(b"v")]
    assert read(records.decode(converted))[0].headers == headers
