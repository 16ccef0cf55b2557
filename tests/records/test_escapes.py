"""What an encoding can't say, as the reader of that encoding sees it (docs/interop.md)."""

from __future__ import annotations

import base64

import pytest

from penstock import records
from penstock.log.header import Magic
from penstock.records import header_kinds
from stored_batches import (
    TIME,
    Headers,
    Record,
    entries,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    read,
    singles,
)


def packed(name: bytes, value: bytes | None) -> str:
    content = "-" if value is None else base64.b64encode(value).decode()
    return f"{base64.b64encode(name).decode()}:{content}"


def properties(*headers: tuple[bytes, bytes | None]) -> dict[str, str]:
    """What a Pulsar client sees of a Kafka record's headers."""
    stored = kafka_batch([Record(b"v", None, headers)])
    ((_, payload),) = entries(join(records.convert(stored, Magic.PULSAR)))
    ((message, _),) = singles(payload)
    pairs = [(pair.key, pair.value) for pair in message.properties]
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


def test_pulsar_shows_text_as_it_is_and_bytes_in_base64() -> None:
    shown = properties((b"text", "ü".encode()), (b"bytes", b"\xff\0"))
    assert shown == {"text": "ü", "penstock.base64.bytes": "/wA="}


def test_pulsar_shows_repeated_names_and_nulls_packed() -> None:
    shown = properties((b"a", b"1"), (b"a", b"\xff"), (b"n", None))
    assert shown == {
        "a": "1",
        "penstock.header.2": packed(b"a", b"\xff"),
        "penstock.header.3": packed(b"n", None),
    }


def test_a_name_that_base64_has_taken() -> None:
    shown = properties((b"a", b"\xff"), (b"penstock.base64.a", b"other"))
    assert shown == {
        "penstock.header.1": packed(b"a", b"\xff"),
        "penstock.base64.a": "other",
    }


def test_many_headers_are_compared_without_taking_for_ever() -> None:
    headers = tuple((b"%d" % (index % 500), b"v") for index in range(1_000))
    assert len(properties(*headers)) == 1_000


def test_kafka_shows_names_that_are_no_text_packed() -> None:
    stored = iggy_batch(iggy_body([Record(b"v", None, ((b"\xff", b"1"),))], kinds=0x11))
    converted = join(records.convert(stored, Magic.KAFKA))
    assert packed(b"\xff", b"1").encode() in converted
    (record,) = read(records.decode(converted))
    assert record.headers == ((b"\xff", b"1"), (b"penstock.iggy.kinds", b"11"))
    back = records.decode(join(records.convert(converted, Magic.IGGY)))
    assert back.headers[4].tolist() == [0x11]


@pytest.mark.parametrize(
    "headers",
    [
        ((b"penstock.header.1", b"no colon"),),
        ((b"penstock.header.1", b"?:-"),),
        ((b"penstock.header.1", b"YQ==:?"),),
        ((b"penstock.header.x", b"YQ==:-"),),
        ((b"penstock.header.1", None),),
        ((b"penstock.base64.a", b"?"),),
        ((b"penstock.timestamp", b"soon"),),
        ((b"penstock.timestamp", b"17"),),
    ],
)
def test_what_only_looks_like_ours_stays(headers: Headers) -> None:
    stored = kafka_batch([Record(b"v", None, headers)])
    assert read(records.decode(stored)) == [Record(b"v", None, headers)]


def test_parts_are_joined_by_their_numbers() -> None:
    text = packed(b"name", b"value" * 900).encode()
    parts = [text[start : start + 255] for start in range(0, len(text), 255)]
    assert len(parts) > 10
    headers = [(b"penstock.header.4.%d" % index, part) for index, part in enumerate(parts)]
    headers.sort()
    stored = kafka_batch([Record(b"v", None, (*headers, (b"last", b"1")))])
    (record,) = read(records.decode(stored))
    assert record.headers == ((b"name", b"value" * 900), (b"last", b"1"))


def test_microseconds_travel_beside_milliseconds() -> None:
    stored = iggy_batch(iggy_body([Record(b"v", time=TIME + 123_456)]))
    for other in (Magic.KAFKA, Magic.PULSAR):
        converted = join(records.convert(stored, other))
        assert str(TIME + 123_456).encode() in converted
        assert records.decode(converted).timestamps.tolist() == [TIME + 123_456]


def test_a_finer_time_counts_only_beside_the_time_that_it_belongs_to() -> None:
    fine = (b"penstock.timestamp", b"%d" % (TIME + 1))
    assert read(records.decode(kafka_batch([Record(b"v", None, (fine,))])))[0].time == TIME + 1
    (record,) = read(records.decode(kafka_batch([Record(b"v", None, (fine,), TIME + 5_000)])))
    assert (record.time, record.headers) == (TIME + 5_000, (fine,))


def test_log_append_time_is_the_time_everywhere() -> None:
    stored = bytearray(kafka_batch([Record(b"a"), Record(b"b", time=TIME + 1_000)]))
    stored[22] |= 8
    stored[35:43] = (TIME // 1000 + 77).to_bytes(8, "big")
    columns = records.decode(stored)
    assert columns.timestamps.tolist() == 2 * [TIME + 77_000]
    assert columns.timestamp_types.tolist() == [1, 1]
    for other in (Magic.PULSAR, Magic.IGGY):
        converted = records.decode(join(records.convert(stored, other)))
        assert converted.timestamps.tolist() == 2 * [TIME + 77_000]


@pytest.mark.parametrize("milliseconds", [1 << 62, -(1 << 62)])
def test_times_that_microseconds_can_not_say_are_the_utmost(milliseconds: int) -> None:
    stored = bytearray(kafka_batch([Record(b"a")]))
    stored[27:35] = milliseconds.to_bytes(8, "big", signed=True)
    (time,) = records.decode(stored).timestamps.tolist()
    assert abs(time) > 9_223_372_000_000_000_000
    assert (time > 0) == (milliseconds > 0)
    for target in Magic:
        records.decode(join(records.convert(stored, target)))


def test_kafkas_control_batches_hold_no_records() -> None:
    stored = bytearray(kafka_batch([Record(b"a")], 3))
    stored[22] |= 0x20
    assert len(records.decode(stored)) == 0
    assert list(records.convert(stored, Magic.IGGY)) == []
    assert list(records.convert(stored, Magic.KAFKA)) == [stored]
    assert records.decode(stored + kafka_batch([Record(b"b")], 4)).offsets.tolist() == [4]


def test_headers_are_left_out_where_they_are_not_wanted() -> None:
    stored = iggy_batch(iggy_body([Record(b"v", b"k", ((b"a", b"1"),))], ids=[7]))
    columns = records.decode(stored, headers=False)
    assert (columns.key(0), columns.headers_of(0)) == (b"k", [(b"a", b"1")])
    assert columns.headers[4].tolist() == [header_kinds.OF_BYTES]
