"""The dialect of 2023: what its Go client was recorded to say, and every command of that time."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from iggy_dialog import Transport
from older_iggy import OK, OlderDialog, name, named, numeric, recorded, request_frame
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import Anonymous, BrokerSettings
from penstock.iggy import batches
from penstock.iggy.wire.murmur3 import murmur3
from penstock.session import PeerError

GOLDEN = recorded("iggy-go-2023-09")
STREAM, TOPIC = numeric(1), numeric(2)
BOTH = STREAM + TOPIC
_TIME_AT = 9
"""Of a polled message."""


@pytest.fixture
async def dialog(broker: Broker) -> AsyncIterator[OlderDialog]:
    made = OlderDialog(broker)
    assert await made.ask(202, struct.pack("<I", 1) + name("shop")) == OK
    assert await made.ask(302, STREAM + struct.pack("<III", 2, 3, 0) + name("orders")) == OK
    yield made
    made.session.close()


def message(payload: bytes, headers: bytes = b"", number: int = 0) -> bytes:
    """One message as it is sent."""
    head = number.to_bytes(16, "little") + struct.pack("<I", len(headers))
    return head + headers + struct.pack("<I", len(payload)) + payload


def to_partition(number: int) -> bytes:
    return struct.pack("<BBI", 2, 4, number)


def with_key(key: bytes) -> bytes:
    return bytes([3, len(key)]) + key


def poll_body(
    kind: int = 1, who: int = 1, partition: int = 1, how: int = 5, value: int = 0, count: int = 10,
    commit: int = 0,
) -> bytes:  # fmt: skip
    at = struct.pack("<IBQIB", partition, how, value, count, commit)
    return struct.pack("<BI", kind, who) + BOTH + at


class Polled:
    """The answer to a poll."""

    def __init__(self, body: bytes) -> None:
        self.partition, self.current, count = struct.unpack_from("<IQI", body)
        self.payloads: list[bytes] = []
        self.offsets: list[int] = []
        at = 16
        while at < len(body):
            offset, state, self.time, number, checksum, size = struct.unpack_from(
                "<QBQ16sII", body, at
            )
            assert state == 1
            assert any(number)
            headers, at = body[at + 41 : at + 41 + size], at + 41 + size
            (length,) = struct.unpack_from("<I", body, at)
            payload, at = body[at + 4 : at + 4 + length], at + 4 + length
            assert zlib.crc32(payload) == checksum
            self.offsets.append(offset)
            self.payloads.append(payload)
            self.headers = headers
        assert len(self.payloads) == count


async def polled(dialog: OlderDialog, **what: int) -> Polled:
    status, body = await dialog.ask(100, poll_body(**what))
    assert status == 0, status
    return Polled(body)


async def send(dialog: OlderDialog, where: bytes, *payloads: bytes) -> None:
    body = BOTH + where + b"".join(map(message, payloads))
    assert await dialog.ask(101, body) == OK


def without_times(answer: bytes) -> bytes:
    """A poll's answer but for the moments at which its messages came."""
    out, at = bytearray(answer), 24
    while at < len(answer):
        out[at + _TIME_AT : at + _TIME_AT + 8] = bytes(8)
        (headers,) = struct.unpack_from("<I", answer, at + 37)
        (payload,) = struct.unpack_from("<I", answer, at + 41 + headers)
        at += 45 + headers + payload
    return bytes(out)


async def test_what_the_go_client_said_gets_the_answers_that_it_took(broker: Broker) -> None:
    dialog = OlderDialog(broker)
    for exchange in GOLDEN:
        answer = await dialog.send(exchange.request)
        if exchange.code == 100:
            assert without_times(answer) == without_times(exchange.answer)
        else:
            assert answer == exchange.answer, exchange.code
    dialog.session.close()


async def test_names_are_stored_in_lower_case_and_with_dots_for_spaces(broker: Broker) -> None:
    dialog = OlderDialog(broker)
    for exchange in GOLDEN[:2]:
        await dialog.send(exchange.request)
    (topic,) = broker.topics.all()
    assert topic.name == ("test", "producer.stream", "topic.one")
    assert len(topic.partitions) == 3
    assert topic.iggy_topic_id == 1, "the second, counted from 0"
    status, body = await dialog.ask(300, named("test.producer.stream") + named("topic.one"))
    assert (status, body[:4], body[12:16]) == (0, struct.pack("<I", 2), struct.pack("<I", 3))
    for refused, code, number in ((202, 1013, 5), (302, 2014, 5)):
        parent = numeric(1) if code == 2014 else b""
        rest = struct.pack("<II", 1, 0) if code == 2014 else b""
        asked = parent + struct.pack("<I", number) + rest + name("a/b")
        assert await dialog.ask(refused, asked) == (code, b"")
    dialog.session.close()


async def test_numbers_are_chosen_by_clients_and_count_from_1(dialog: OlderDialog) -> None:
    u32 = struct.Struct("<I").pack
    for asked, status in (
        ((202, u32(0) + name("x")), 1014),
        ((202, u32(1) + name("x")), 1011),
        ((202, u32(1) + name("shop")), 1011),
        ((202, u32(7) + name("Shop")), 1012),
        ((302, STREAM + u32(0) + u32(1) + u32(0) + name("x")), 2016),
        ((302, STREAM + u32(2) + u32(1) + u32(0) + name("orders")), 2012),
        ((302, STREAM + u32(9) + u32(1) + u32(0) + name("ORDERS")), 2013),
        ((302, STREAM + u32(9) + u32(100_001) + u32(0) + name("x")), 2015),
        ((302, numeric(5) + u32(9) + u32(1) + u32(0) + name("x")), 1009),
        ((602, BOTH + u32(0)), 5003),
        ((202, u32(2**32 - 1) + name("last")), 0),
        ((203, numeric(2**32 - 1)), 0),
        ((202, u32(3) + name("third")), 0),
    ):
        assert await dialog.ask(*asked) == (status, b"")
    status, body = await dialog.ask(201)
    ids = [struct.unpack_from("<I", body, at)[0] for at in (0, 33 + 4)]
    assert (status, ids) == (0, [1, 3])


async def test_what_is_missing_is_an_error(dialog: OlderDialog) -> None:
    u32 = struct.Struct("<I").pack
    for asked, status in (
        ((200, numeric(9)), 1009),
        ((200, named("nobody")), 1010),
        ((203, numeric(9)), 1009),
        ((300, STREAM + numeric(9)), 2010),
        ((300, STREAM + named("nobody")), 2011),
        ((301, numeric(9)), 1009),
        ((303, STREAM + numeric(9)), 2010),
        ((402, STREAM + numeric(9) + u32(1)), 2010),
        ((600, BOTH + u32(4)), 5000),
        ((603, BOTH + u32(4)), 5000),
        ((604, BOTH + u32(4)), 5000),
        ((21, u32(0)), 101),
        ((21, u32(12345)), 100),
        ((101, BOTH + to_partition(4) + message(b"x")), 3007),
        ((101, BOTH + to_partition(0) + message(b"x")), 3007),
        ((100, poll_body(partition=0)), 3007),
        ((100, poll_body(count=0)), 4009),
        ((100, poll_body(kind=2, who=4)), 5000),
        ((121, struct.pack("<BI", 1, 1) + BOTH + struct.pack("<IQ", 1, 5)), 4100),
    ):
        assert await dialog.ask(*asked) == (status, b""), asked


async def test_messages_that_are_none_are_refused(dialog: OlderDialog) -> None:
    to = BOTH + to_partition(1)
    long_key = struct.pack("<I", 256) + bytes(256) + b"\1" + struct.pack("<I", 1) + b"v"
    for body, status in (
        (to, 4009),
        (to + message(b""), 4024),
        (to + message(b"x")[:-1], 4021),
        (to + message(b"x") + b"\0", 4021),
        (to + message(b"x", long_key), 4018),
        (to + message(b"x", b"\1\0\0\0k\x10\1\0\0\0v"), 4019),
        (to + message(b"x", b"\1\0\0\0k\1\0\0\0\0"), 4019),
        (BOTH + b"\2\0" + message(b"x"), 4028),
        (BOTH + b"\3\0" + message(b"x"), 4028),
    ):
        assert await dialog.ask(101, body) == (status, b""), body
    assert (await polled(dialog)).payloads == []


async def test_every_strategy_reads_from_where_it_says(dialog: OlderDialog) -> None:
    await send(dialog, to_partition(1), b"0", b"1", b"2")
    await send(dialog, to_partition(1), b"3", b"4")
    everything = [b"0", b"1", b"2", b"3", b"4"]
    for what, payloads in (
        ({"how": 1, "value": 3}, everything[3:]),
        ({"how": 1, "value": 5}, []),
        ({"how": 2, "value": 1}, everything),
        ({"how": 2, "value": 2**63}, []),
        ({"how": 3, "count": 2}, everything[:2]),
        ({"how": 4, "count": 2}, everything[3:]),
        ({"how": 5, "count": 2}, everything[:2]),
        ({"how": 5, "count": 2, "commit": 1}, everything[:2]),
        ({"how": 5, "count": 2, "commit": 1}, everything[2:4]),
        ({"how": 5, "count": 2, "commit": 1}, everything[4:]),
        ({"how": 5, "count": 2, "commit": 1}, []),
        ({"how": 5, "who": 2}, everything),
    ):
        answer = await polled(dialog, **what)
        assert (answer.payloads, answer.partition, answer.current) == (payloads, 1, 4), what


async def test_offsets_are_stored_by_consumer_and_partition(dialog: OlderDialog) -> None:
    who = struct.pack("<BI", 1, 0) + BOTH
    await send(dialog, to_partition(2), b"0", b"1", b"2")
    at = struct.Struct("<IQQ")
    assert await dialog.ask(120, who + struct.pack("<I", 2)) == (0, at.pack(2, 2, 0))
    assert await dialog.ask(121, who + struct.pack("<IQ", 2, 2)) == OK
    assert await dialog.ask(120, who + struct.pack("<I", 2)) == (0, at.pack(2, 2, 2))
    assert await dialog.ask(120, who + struct.pack("<I", 1)) == (0, at.pack(1, 0, 0))


async def test_partitions_are_chosen_in_turn_and_by_murmur3(dialog: OlderDialog) -> None:
    for payload in (b"a", b"b", b"c", b"d"):
        await send(dialog, b"\1\0", payload)
    # iggy.md has these remainders of the numbers that Rust's murmur3 gives.
    await send(dialog, with_key(b"\1\0\0\0"), b"two")
    await send(dialog, with_key(b"key-1"), b"one")
    third = next(bytes([n]) for n in range(1, 99) if murmur3(bytes([n])) % 3 == 0)
    await send(dialog, with_key(third), b"three")
    read = [(await polled(dialog, partition=number, how=3)).payloads for number in (1, 2, 3)]
    assert read == [[b"a", b"d", b"one"], [b"b", b"two"], [b"c", b"three"]]


async def test_group_divides_partitions_and_ignores_the_one_that_a_member_names(
    broker: Broker, dialog: OlderDialog
) -> None:
    u32 = struct.Struct("<I").pack
    other = OlderDialog(broker)
    for number in (1, 2, 3):
        await send(dialog, to_partition(number), str(number).encode())
    assert await dialog.ask(602, BOTH + u32(6)) == OK
    assert await dialog.ask(602, BOTH + u32(6)) == (5001, b"")
    assert await dialog.ask(100, poll_body(kind=2, who=6)) == (5002, b"")
    assert await dialog.ask(604, BOTH + u32(6)) == OK
    stored = struct.pack("<BI", 2, 6) + BOTH + u32(1)
    assert await dialog.ask(120, stored) == (3007, b"")
    first = [await polled(dialog, kind=2, who=6, partition=3, commit=1) for _ in range(4)]
    assert [(answer.partition, answer.payloads) for answer in first] == [
        (1, [b"1"]), (2, [b"2"]), (3, [b"3"]), (1, [])
    ]  # fmt: skip
    assert await dialog.ask(120, stored) == (0, struct.pack("<IQQ", 1, 0, 0))
    assert await other.ask(604, BOTH + u32(6)) == OK
    assert (await polled(other, kind=2, who=6, how=3)).payloads == [b"2"]
    status, body = await dialog.ask(600, BOTH + u32(6))
    me, them = [(await each.ask(20))[1][:4] for each in (dialog, other)]
    head = struct.pack("<III", 6, 3, 2)
    members = me + u32(2) + u32(1) + u32(3) + them + u32(1) + u32(2)
    assert (status, body) == (0, head + members)
    assert (await dialog.ask(601, BOTH))[1] == head
    client = await other.ask(20)
    assert client[1][-16:] == u32(1) + u32(1) + u32(2) + u32(6), "stream, topic, group"
    assert (await dialog.ask(21, them)) == client
    other.session.close()
    assert (await dialog.ask(600, BOTH + u32(6)))[1][8:12] == u32(1)
    assert await dialog.ask(605, BOTH + u32(6)) == OK
    assert await dialog.ask(603, BOTH + u32(6)) == OK
    assert await dialog.ask(601, BOTH) == (0, b"")


async def test_a_member_without_heartbeat_stays_until_it_is_gone(
    dialog: OlderDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "IGGY_SILENCE_SECONDS", 0.01)
    group = BOTH + struct.pack("<I", 6)
    assert await dialog.ask(602, group) == OK
    assert await dialog.ask(604, group) == OK
    await asyncio.sleep(0.1)
    assert (await dialog.ask(600, group))[1][8:12] == struct.pack("<I", 1)


async def test_large_sends_and_polls_are_restated_too(
    dialog: OlderDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "IGGY_RESTATED_AT_ONCE_BYTES", 100)
    await send(dialog, to_partition(1), b"0" * 300, b"1" * 300)
    assert await dialog.ask(101, BOTH + to_partition(1) + message(b"x" * 300)[:-1]) == (4021, b"")
    assert (await polled(dialog, commit=1)).payloads == [b"0" * 300, b"1" * 300]
    assert (await polled(dialog)).payloads == []


async def test_what_comes_behind_a_large_send_is_stored_behind_it(
    dialog: OlderDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "IGGY_RESTATED_AT_ONCE_BYTES", 100)
    payloads = [bytes([48 + index]) * (300 if index % 3 == 0 else 1) for index in range(10)]
    await send(dialog, to_partition(1), b"before")
    await asyncio.gather(*(send(dialog, to_partition(1), each) for each in payloads))
    assert (await polled(dialog, count=100)).payloads == [b"before", *payloads]


async def test_descriptions_lie_as_they_did(broker: Broker, dialog: OlderDialog) -> None:
    u32 = struct.Struct("<I").pack
    await send(dialog, to_partition(1), b"12345")
    (topic,) = broker.topics.all()
    created = struct.pack("<Q", topic.created_at_us)
    size = struct.pack("<Q", sum(each.size_bytes for each in topic.partitions))
    one = struct.pack("<Q", 1)
    described = u32(2) + created + u32(3) + u32(0) + size + one + name("orders")
    status, body = await dialog.ask(200, STREAM)
    assert (status, body[33 + 4 :]) == (0, described)
    assert body[:4] + body[12:37] == u32(1) + u32(1) + size + one + name("shop")
    assert await dialog.ask(201) == (0, body[:37])
    assert await dialog.ask(301, STREAM) == (0, described)
    status, body = await dialog.ask(300, BOTH)
    assert (status, len(body)) == (0, len(described) + 3 * 40)
    partitions = [body[at : at + 40] for at in range(len(described), len(body), 40)]
    assert [part[:4] for part in partitions] == [u32(1), u32(2), u32(3)]
    assert [part[-8:] for part in partitions] == [one, bytes(8), bytes(8)]
    status, body = await dialog.ask(10)
    assert struct.unpack_from("<III", body, 72) == (1, 1, 3)
    status, body = await dialog.ask(22)
    assert body[4:5] + body[5:9] == b"\1" + u32(len(Transport.peer))
    assert body[9:] == Transport.peer.encode() + u32(0)


async def test_topics_grow_shrink_are_renamed_and_go(broker: Broker, dialog: OlderDialog) -> None:
    u32 = struct.Struct("<I").pack
    assert await dialog.ask(402, BOTH + u32(2)) == OK
    (topic,) = broker.topics.all()
    assert len(topic.partitions) == 5
    assert await dialog.ask(403, BOTH + u32(4)) == OK
    assert len(topic.partitions) == 1
    # More than there are is all of them, as then.
    assert await dialog.ask(403, BOTH + u32(9)) == OK
    assert topic.partitions == []
    assert await dialog.ask(403, BOTH + u32(1)) == OK
    assert await dialog.ask(403, BOTH + u32(0)) == (2015, b"")
    assert await dialog.ask(204, STREAM + name("Store")) == OK
    assert await dialog.ask(304, BOTH + u32(0) + name("Bills")) == OK
    assert topic.name == ("public", "store", "bills")
    assert await dialog.ask(303, BOTH) == OK
    assert await dialog.ask(203, STREAM) == OK
    assert await dialog.ask(201) == (0, b"")


@pytest.mark.parametrize(
    "built",
    [
        request_frame(500),
        request_frame(102, BOTH + bytes(5)),
        request_frame(300, BOTH[:-1]),
        request_frame(202, struct.pack("<I", 5) + b"\0"),
        request_frame(200, b"\3\4" + bytes(4)),
        request_frame(200, b"\2\2\xff\xff"),
        request_frame(101, BOTH + b"\4\0"),
        request_frame(100, poll_body()[:-1]),
    ],
    ids=lambda built: built.hex(),
)
async def test_what_makes_no_sense_ends_the_connection(broker: Broker, built: bytes) -> None:
    dialog = OlderDialog(broker)
    with pytest.raises(PeerError):
        await dialog.send(built)
    dialog.session.close()


@pytest.mark.parametrize("exchange", GOLDEN, ids=lambda exchange: str(exchange.code))
async def test_request_that_is_cut_off_is_refused_or_ends_the_connection(
    broker: Broker, exchange: object
) -> None:
    for size in range(len(exchange.body)):  # type: ignore[attr-defined]
        dialog = OlderDialog(broker)
        try:
            status, _ = await dialog.ask(exchange.code, exchange.body[:size])  # type: ignore[attr-defined]
        except PeerError:
            continue
        else:
            assert status or exchange.code == 302, "two bytes more than it needs"  # type: ignore[attr-defined]
        finally:
            dialog.session.close()


@pytest.mark.parametrize(
    ("allowed", "address", "status"),
    [
        (Anonymous.LOOPBACK, "127.0.0.1", 0),
        (Anonymous.LOOPBACK, "::1", 0),
        (Anonymous.LOOPBACK, "10.0.0.1", 40),
        (Anonymous.NEVER, "127.0.0.1", 40),
        (Anonymous.ALWAYS, "10.0.0.1", 0),
    ],
)
async def test_clients_without_login_are_let_in_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: Anonymous, address: str, status: int
) -> None:
    monkeypatch.setattr(Transport, "local_address", (address, 8090))
    broker = await Broker.open(tmp_path, BrokerSettings(iggy_anonymous=allowed))
    dialog = OlderDialog(broker)
    assert await dialog.ask(1) == OK
    assert (await dialog.ask(201))[0] == status
    dialog.session.close()
    await broker.close()
