"""The dialect of apache-iggy 0.5 to 0.8: what its clients have said, and all commands."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator

import pytest

from iggy_dialog import Dialog
from older_iggy import OK, Exchange, OlderDialog, name, named, numeric, recorded, request_frame
from older_iggy_words import S, T, Words, read, u32, u64
from penstock.broker.broker import Broker
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.identifiers import Identifier
from penstock.iggy.wire.legacy import LegacyCodec
from penstock.iggy.wire.older import read_request
from penstock.iggy.wire.versions_l import VERSIONS, of_library
from penstock.xxh32 import xxh32

RECORDED = {
    version: recorded(f"apache-iggy-{version}") for version in ("0.5.0", "0.6.0", "0.7.0", "0.8.0")
}
LIBRARIES = {"0.5.0": "0.7.0", "0.6.0": "0.8.0", "0.7.0": "0.9.0", "0.8.0": "0.10.0"}
"""What the client of a release calls its version."""
FOREVER = 2**64 - 1
G = named("g")

every_release = pytest.mark.parametrize("release", RECORDED)


READER = b"\1" + named("reader")
MEMBER = b"\2" + G


@pytest.fixture
async def dialog(broker: Broker, release: str) -> AsyncIterator[OlderDialog]:
    made, words = OlderDialog(broker), Words(release)
    await made.log_in(LIBRARIES[release])
    assert (await made.ask(202, words.chosen() + name("s")))[0] == 0
    assert (await made.ask(302, S + words.chosen() + topic_body(3)))[0] == 0
    yield made
    made.session.close()


def topic_body(partitions: int, compression: int = 1, expiry: int = 0, size: int = 0) -> bytes:
    return u32(partitions) + struct.pack("<BQQB", compression, expiry, size, 0) + name("t")


def outcome(exchange: Exchange, answer: bytes, words: Words) -> object:
    """What of an answer does not depend on the clock or on the machine."""
    status, body = answer[:4], answer[8:]
    if exchange.code == Command.GET_CLUSTER_METADATA:
        return status
    if exchange.code == Command.POLL_MESSAGES:
        partition, current, messages = read(body, words)
        return partition, current, [(each.offset, each.payload) for each in messages]
    return status, len(body), body[:4]


@every_release
async def test_recorded_session_has_the_same_outcome_again(broker: Broker, release: str) -> None:
    dialog, words = OlderDialog(broker), Words(release)
    for exchange in RECORDED[release]:
        answer = await dialog.send(exchange.request)
        assert outcome(exchange, answer, words) == outcome(exchange, exchange.answer, words)
    dialog.session.close()


@every_release
def test_recorded_requests_are_written_as_they_were_read(release: str) -> None:
    spoken = of_library(LIBRARIES[release])
    kinds = {38: requests.LoginRegister, 100: requests.PollMessages, 101: requests.SendMessages,
             202: requests.CreateStream, 604: requests.ConsumerGroupRequest}  # fmt: skip
    seen = set()
    for exchange in RECORDED[release]:
        kind = kinds.get(exchange.code)
        if kind is not None:
            seen.add(exchange.code)
            layout = spoken.layout(kind)
            assert layout.decode(exchange.body).encode() == exchange.body
            assert isinstance(read_request(kind, layout, Reader(exchange.body)), kind)
    assert seen == set(kinds)


@every_release
async def test_request_that_is_cut_off_is_refused_or_another_whole_one(
    broker: Broker, release: str
) -> None:
    dialog = OlderDialog(broker)
    whole = {exchange.code: exchange for exchange in RECORDED[release]}
    await dialog.log_in(LIBRARIES[release])
    for code in set(whole) - {1, 12, 38, 101}:
        for size in range(len(whole[code].body)):
            status, body = await dialog.ask(code, whole[code].body[:size])
            assert status or not body, code
    for size in range(len(whole[101].body)):
        assert (await dialog.ask(101, whole[101].body[:size]))[0], size
    dialog.session.close()


def test_a_version_is_known_by_its_requests_alone() -> None:
    for release, exchanges in RECORDED.items():
        for code, kind in (
            (202, requests.CreateStream),
            (100, requests.PollMessages),
            (101, requests.SendMessages),
        ):
            codec = LegacyCodec()
            codec.parse(memoryview(request_frame(38)))
            (first, *_) = (each for each in exchanges if each.code == code)
            request = codec.decode(codec.parse(memoryview(first.request)), kind)
            words = Words(release)
            if code == 202:
                assert request.name == f"older-{release}"
            elif code == 100 and words.first:
                assert request.partition_id == 0
            elif code == 101:
                assert request.form.name == (
                    "WITH_RESERVE" if words.has_kinds else "WITHOUT_RESERVE"
                )
    assert {of_library(version) for version in LIBRARIES.values()} == set(VERSIONS)


async def test_bytes_of_0_8_get_the_answers_that_its_client_took(broker: Broker) -> None:
    dialog = OlderDialog(broker)
    assert await dialog.send(bytes.fromhex("0400000001000000")) == bytes(8)
    login = bytes.fromhex(
        "1c00000026000000046967677904696767790600000030 2e31302e30 00000000".replace(" ", "")
    )
    assert (await dialog.send(login)).hex() == "000000000400000000000000"
    stream = await dialog.send(bytes.fromhex("07000000ca000000027331"))
    assert stream[8:12] + stream[20:] == bytes(4 + 4 + 8 + 8) + b"\2s1"
    created = bytes.fromhex("210000002e010000020273310100000001" + "00" * 17 + "027431")
    topic = await dialog.send(created)
    assert topic[20:24] + topic[24:33] == u32(1) + u64(FOREVER) + b"\1"
    assert topic[33:42] == u64(FOREVER) + b"\1"
    assert topic[58:61] == b"\2t1"
    assert len(topic) == 8 + 51 + 2 + 40
    sent = bytes.fromhex(
        "6c000000650000001200000002027331020274310204000000000100000000000000420000000000000000000000"
        + "00" * 40 + "0cf55942c8600600" + "0000000002000000" + "00" * 8 + "6869"
    )  # fmt: skip
    assert await dialog.send(sent) == bytes(8)
    polled = await dialog.send(
        bytes.fromhex(
            "260000006400000001010401000000020273310202743101000000000300000000000000000a00000000"
        )
    )
    partition, current, (message,) = read(polled[8:], Words("0.8.0"))
    assert (partition, current, message.offset, message.payload) == (0, 0, 0, b"hi")
    assert message.origin == int.from_bytes(bytes.fromhex("0cf55942c8600600"), "little")
    assert any(message.id)
    dialog.session.close()


@every_release
async def test_everything_but_a_ping_needs_a_login(broker: Broker, release: str) -> None:
    dialog = OlderDialog(broker)
    assert await dialog.ask(1) == OK
    wrong = b"\4iggy\5wrong" + u32(0) + u32(0)
    assert await dialog.ask(38, wrong) == (42, b"")
    assert await dialog.ask(201) == (40, b"")
    assert await dialog.ask(44, b"\3abc") == (53, b"")
    await dialog.log_in(LIBRARIES[release])
    assert await dialog.ask(201) == OK
    assert await dialog.ask(39) == OK
    assert await dialog.ask(201) == (40, b"")
    assert await dialog.ask(38, b"\4iggy\4iggy") == (0, u32(0)), "the oldest say no more"
    dialog.session.close()


@every_release
async def test_messages_are_sent_and_polled_with_every_strategy(
    broker: Broker, dialog: OlderDialog, release: str
) -> None:
    words = Words(release)
    headers = words.headers((b"k", 2, b"v"), (b"n", 11, u32(7)))
    head = u32(len(S + T) + 10) + S + T + words.to(1) + u32(2)
    two = words.messages((b"0", headers), (b"1" * 300, b""), origin=1_700_000_000_000_000)
    assert await dialog.ask(101, head + two) == OK
    assert await dialog.ask(101, words.send(words.to(1), b"2")) == OK
    for what, offsets in (
        ({"how": 3}, [0, 1, 2]), ({"how": 3, "count": 1}, [0]), ({"how": 4, "count": 2}, [1, 2]),
        ({"how": 1, "value": 1}, [1, 2]), ({"how": 1, "value": 3}, []),
        ({"how": 2, "value": 1}, [0, 1, 2]),
        ({"how": 2, "value": FOREVER}, []), ({"how": 5, "count": 2, "commit": 1}, [0, 1]),
        ({"how": 5, "commit": 1}, [2]), ({"how": 5}, []),
    ):  # fmt: skip
        status, body = await dialog.ask(100, words.poll(READER, 1, **what))
        partition, current, messages = read(body, words)
        assert (status, partition, current) == (0, 1 + words.first, 2)
        assert [message.offset for message in messages] == offsets, what
    status, _ = await dialog.ask(100, words.poll(READER, 1, count=0))
    assert status == (4009 if words.first else 0)
    _, body = await dialog.ask(100, words.poll(READER, 1))
    first, second, third = read(body, words)[2]
    assert (first.payload, first.headers) == (b"0", headers)
    assert (second.payload, second.headers) == (b"1" * 300, b"")
    assert first.origin == second.origin == 1_700_000_000_000_000
    assert first.time == second.time <= third.origin <= third.time
    assert len({first.id, second.id, third.id}) == 3


@every_release
async def test_messages_that_are_none_are_refused(dialog: OlderDialog, release: str) -> None:
    words = Words(release)
    head = u32(len(S + T) + 10) + S + T + words.to(0)
    one = words.messages((b"x", b""))
    for body, status in (
        (u32(0), 4035),
        (u32(2) + one, 4036),
        (u32(2**31) + one, 4035),
        (u32(1) + one[:-1], 4036),
        (u32(1) + one + b"\0", 4036),
        (u32(1) + one[:4] + u32(9) + one[8:], 4035),
        (u32(1) + words.messages((b"", b"")), 4025),
        (u32(1) + words.messages((b"x", words.headers((b"", 2, b"v")))), 4018),
        (u32(1) + words.messages((b"x", words.headers((b"k", 2, b"")))), 4019),
        (u32(1) + words.messages((b"x", words.headers((b"k", 16, b"v")))), 4040),
        (u32(1) + words.messages((b"x", b"\2")), 4018),
        (u32(1) + words.messages((b"x", bytes(100_001))), 4017),
    ):
        assert await dialog.ask(101, head + body) == (status, b""), body[:80]
    if words.has_kinds:
        reserved = one[: 16 + 56] + b"\1" + one[16 + 57 :]
        assert await dialog.ask(101, head + u32(1) + reserved) == (4101, b"")
    assert read((await dialog.ask(100, words.poll(READER)))[1], words)[2] == []


@every_release
async def test_partitions_are_chosen_in_turn_by_topic_and_by_key(
    dialog: OlderDialog, release: str
) -> None:
    words = Words(release)
    for payload in (b"a", b"b", b"c", b"d"):
        assert await dialog.ask(101, words.send(b"\1\0", payload)) == OK
    assert await dialog.ask(101, words.send(b"\3\5key-1", b"k")) == OK
    read_from = []
    for index in range(3):
        _, body = await dialog.ask(100, words.poll(READER, index))
        read_from.append([message.payload for message in read(body, words)[2]])
    expected = [[b"a", b"d"], [b"b"], [b"c"]]
    expected[xxh32(b"key-1") % 3].append(b"k")
    assert read_from == expected


@every_release
async def test_offsets_are_stored_and_deleted(dialog: OlderDialog, release: str) -> None:
    words = Words(release)
    where = READER + S + T
    assert await dialog.ask(120, where + words.partition(None)) == OK
    assert await dialog.ask(121, where + words.partition(None) + u64(0)) == (4100, b"")
    assert await dialog.ask(101, words.send(words.to(0), b"0", b"1")) == OK
    assert await dialog.ask(121, where + words.partition(0) + u64(1)) == OK
    stored = words.number(0) + u64(1) + u64(1)
    assert await dialog.ask(120, where + words.partition(None)) == (0, stored)
    by_number = b"\1" + numeric(xxh32(b"reader")) + S + T
    assert await dialog.ask(120, by_number + words.partition(0)) == (0, stored)
    assert await dialog.ask(122, where + words.partition(0)) == OK
    assert await dialog.ask(122, where + words.partition(0)) == (3021, b"")


@every_release
async def test_members_of_a_group_read_their_partitions_in_turn(
    broker: Broker, dialog: OlderDialog, release: str
) -> None:
    words = Words(release)
    for index in range(3):
        assert await dialog.ask(101, words.send(words.to(index), str(index).encode())) == OK
    assert await dialog.ask(604, S + T + G) == (5000, b"")
    status, body = await dialog.ask(602, S + T + words.chosen() + name("g"))
    assert (status, body) == (0, words.number(0) + u32(3) + u32(0) + name("g"))
    assert await dialog.ask(602, S + T + words.chosen() + name("g")) == (5004, b"")
    assert await dialog.ask(100, words.poll(MEMBER, None)) == (5006, b"")
    assert await dialog.ask(604, S + T + G) == OK
    assert await dialog.ask(604, S + T + numeric(words.first)) == OK
    polls = [await dialog.ask(100, words.poll(MEMBER, None, 5, commit=1)) for _ in range(4)]
    found = [read(body, words) for _, body in polls]
    assert [(each[0] - words.first, len(each[2])) for each in found] == [
        (0, 1),
        (1, 1),
        (2, 1),
        (0, 0),
    ]
    other = OlderDialog(broker)
    await other.log_in(LIBRARIES[release])
    assert await other.ask(604, S + T + G) == OK
    none = u32(0) + u64(0) + u32(0)
    assert await dialog.ask(100, words.poll(MEMBER, 1)) == (0, none), "it is the other's"
    me, them = [(await each.ask(20))[1][:4] for each in (dialog, other)]
    status, body = await dialog.ask(600, S + T + G)
    ids = (me, them) if words.first else (u32(0), u32(1))
    members = (
        ids[0] + u32(2) + words.number(0) + words.number(2) + ids[1] + u32(1) + words.number(1)
    )
    group = words.number(0) + u32(3) + u32(2) + name("g")
    assert (status, body) == (0, group + members)
    assert await dialog.ask(601, S + T) == (0, group)
    status, body = await other.ask(20)
    assert body[4:8] == words.number(0), "root"
    assert body[-12:] == words.number(0) * 3
    assert await other.ask(605, S + T + G) == OK
    assert await other.ask(605, S + T + G) == (5006, b"")
    assert await dialog.ask(603, S + T + G) == OK
    assert await dialog.ask(600, S + T + G) == OK
    other.session.close()


@every_release
async def test_what_is_missing_is_nothing_to_a_look_up(dialog: OlderDialog, release: str) -> None:
    nobody, words = named("nobody"), Words(release)
    stream, topic = (1010, 2011) if words.first else (1009, 2010)
    listed = 0 if words.has_kinds else stream  # From 0.7 on.
    for code, body, status in (
        (200, nobody, 0), (200, numeric(99), 0), (300, S + nobody, 0), (300, nobody + T, 0),
        (600, S + T + nobody, 0), (21, u32(99), 0), (31, nobody, 0),
        (120, READER + S + nobody + words.partition(0), 0),
        (120, READER + S + T + words.partition(9), 0), (301, nobody, listed),
        (120, MEMBER + S + T + words.partition(0), 0), (601, nobody + T, listed),
        (203, numeric(99), 1009), (203, nobody, stream), (303, S + numeric(99), 2010),
        (303, S + nobody, topic), (500, b"", 3), (606, S + T + G, 3), (33, b"x", 5),
    ):  # fmt: skip
        assert await dialog.ask(code, body) == (status, b""), (code, body)


@every_release
async def test_descriptions_lie_as_they_did(
    broker: Broker, dialog: OlderDialog, release: str
) -> None:
    words = Words(release)
    (topic,) = broker.topics.all()
    created = u64(topic.created_at_us)
    described = words.number(0) + created + u32(3) + u64(FOREVER) + b"\1" + u64(FOREVER) + b"\1"
    described += u64(0) + u64(0) + name("t")
    assert await dialog.ask(301, S) == (0, described)
    status, body = await dialog.ask(200, numeric(words.first))
    assert (status, body[34:]) == (0, described)
    assert await dialog.ask(201) == (0, body[:34])
    status, body = await dialog.ask(300, S + numeric(words.first))
    assert (status, body[: len(described)], len(body)) == (0, described, len(described) + 120)
    assert body[-40:-36] == words.number(2)
    status, body = await dialog.ask(10)
    assert struct.unpack_from("<III", body, 76) == (1, 1, 3)
    status, users = await dialog.ask(32)
    assert users[:4] + users[12:] == words.number(0) + b"\1\4iggy"
    status, body = await dialog.ask(31, numeric(words.first))
    assert body[: len(users)] == users
    assert body[len(users)] == 1
    assert await dialog.ask(41) == OK
    assert (await dialog.ask(22))[1][4:8] == words.number(0)


@every_release
async def test_topics_are_changed_and_go(broker: Broker, dialog: OlderDialog, release: str) -> None:
    words = Words(release)
    (topic,) = broker.topics.all()
    assert await dialog.ask(101, words.send(words.to(2), b"x")) == OK
    assert await dialog.ask(503, S + T + words.number(2) + u32(1)) == OK
    assert await dialog.ask(503, S + T + words.number(3) + u32(1)) == (3007, b"")
    assert await dialog.ask(305, S + T) == OK
    assert await dialog.ask(205, S) == OK
    assert topic.partitions[2].start_offset == 1
    update = struct.pack("<BQQB", 2, 0, 0, 1)
    assert await dialog.ask(304, S + T + update + name("u")) == OK
    assert topic.name.topic == "u"
    assert topic.config.value("compression_label") == "gzip"
    assert await dialog.ask(304, S + named("u") + struct.pack("<BQQB", 3, 0, 0, 1) + name("u")) == (
        3,
        b"",
    )
    assert await dialog.ask(402, S + named("u") + u32(1)) == OK
    assert len(topic.partitions) == 4
    assert await dialog.ask(102, S + named("u") + words.number(3) + b"\1") == OK
    assert await dialog.ask(102, S + named("u") + words.number(4) + b"\1") == (3007, b"")
    assert await dialog.ask(204, S + name("r")) == OK
    assert await dialog.ask(303, named("r") + named("u")) == OK
    assert await dialog.ask(203, named("r")) == OK
    assert broker.topics.all() == []


async def test_numbers_are_chosen_in_0_5(broker: Broker) -> None:
    dialog = OlderDialog(broker)
    await dialog.log_in("0.7.0")
    status, body = await dialog.ask(202, u32(8) + name("s"))
    assert (status, body[:4]) == (0, u32(8))
    assert await dialog.ask(202, u32(8) + name("x")) == (1011, b"")
    assert (await dialog.ask(202, u32(0) + name("y")))[1][:4] == u32(1)
    status, body = await dialog.ask(302, numeric(8) + u32(5) + topic_body(1))
    assert (status, body[:4]) == (0, u32(5))
    assert await dialog.ask(302, numeric(8) + u32(5) + topic_body(1)[:-1] + b"x") == (2012, b"")
    status, body = await dialog.ask(602, S + T + u32(4) + name("g"))
    assert (status, body[:4]) == (0, u32(4))
    assert await dialog.ask(602, S + T + u32(4) + name("h")) == (5001, b"")
    assert (await dialog.ask(602, S + T + u32(0) + name("h")))[1][:4] == u32(5)
    dialog.session.close()


@every_release
async def test_all_dialects_see_one_log(broker: Broker, dialog: OlderDialog, release: str) -> None:
    words, early, today = Words(release), OlderDialog(broker), Dialog(broker)
    await today.log_in()
    assert await dialog.ask(101, words.send(words.to(2), b"later")) == OK
    message = bytes(16) + u32(0) + u32(5) + b"early"
    assert await early.ask(101, S + T + b"\2\4" + u32(3) + message) == OK
    _, body = await dialog.ask(100, words.poll(READER, 2))
    assert [each.payload for each in read(body, words)[2]] == [b"later", b"early"]
    _, body = await early.ask(
        100, struct.pack("<BI", 1, 1) + S + T + struct.pack("<IBQIB", 3, 3, 0, 9, 0)
    )
    assert body[:16] == u32(3) + u64(1) + u32(2)
    found = await today.ask(
        Command.GET_TOPIC, requests.TopicRequest(Identifier("s"), Identifier(0))
    )
    assert replies.TopicDetails.decode(found.body).partitions[2].messages_count == 2
    for each in (early, today):
        each.session.close()
