"""Goal: frames are cut, versions kept and orders held, and no input breaks a session.

Method: bytes into a session over a real broker, without a socket.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dialog import Dialog, kafka_broker
from patience import PATIENCE_SECONDS
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.handlers import HANDLERS
from penstock.kafka.wire import APIS, ErrorCode, api
from penstock.limits import KAFKA_REQUEST_BYTES, MEMORY_BYTES_LEAST
from penstock.memory import Memory
from penstock.session import PeerError


async def test_a_frame_is_its_size_and_what_it_counts(dialog: Dialog) -> None:
    head = struct.pack(">i", 10)
    for count in range(4):
        assert dialog.session.frame_size(memoryview(head[:count])) is None
    assert dialog.session.frame_size(memoryview(head)) == 14
    assert dialog.session.frame_size(memoryview(head + b"more")) == 14


@pytest.mark.parametrize("size", [-1, KAFKA_REQUEST_BYTES + 1, 0x47455420, 0x16030100])
async def test_an_impossible_size_is_refused(dialog: Dialog, size: int) -> None:
    with pytest.raises(PeerError):
        dialog.session.frame_size(memoryview(struct.pack(">i", size)))


async def test_what_is_offered_is_what_is_registered(dialog: Dialog) -> None:
    for version in range(5):
        response = await dialog.ask(
            "ApiVersions", version, client_software_name="t", client_software_version="1"
        )
        offered = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        assert offered == {
            key: (handler.versions.first, handler.versions.last)
            for key, handler in HANDLERS.items()
        }
    assert offered[0][0] == 0, "librdkafka up to 2.10 needs Produce from version 0 to compress"


async def test_every_offered_version_exists() -> None:
    for handler in HANDLERS.values():
        known = handler.api.versions
        assert known.first <= handler.versions.first <= handler.versions.last <= known.last


async def test_an_unknown_version_of_api_versions_is_answered_in_version_0(dialog: Dialog) -> None:
    # From version 3 on the header has tagged fields, and the body is not known.
    frame = memoryview(bytearray(struct.pack(">ihhihb", 20, 18, 99, 7, -1, 0) + b"whatever!"))
    response = await dialog.send_frame("ApiVersions", 0, frame)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    (own,) = response.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 4)


@pytest.mark.parametrize("software", ["", "-a", "a-", "a b", "a\n"])
async def test_software_that_is_named_against_the_rules_is_refused(
    dialog: Dialog, software: str
) -> None:
    response = await dialog.ask(
        "ApiVersions", 3, client_software_name=software, client_software_version="1"
    )
    assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_trailing_bytes_are_ignored(dialog: Dialog) -> None:
    # librdkafka 0.11 sends four bytes after ApiVersions v0.
    frame = dialog.frame("ApiVersions", 0, api("ApiVersions").request())
    longer = memoryview(bytearray(frame) + bytes(4))
    struct.pack_into(">i", longer, 0, len(longer) - 4)
    response = await dialog.send_frame("ApiVersions", 0, longer)
    assert response.error_code == 0


async def test_a_client_without_id_is_served(dialog: Dialog) -> None:
    response = await Dialog(dialog.broker, client_id=None).ask("ListGroups")
    assert response.error_code == 0


@pytest.mark.parametrize(
    ("key", "version"),
    [(0, 14), (1, 3), (3, -1), (3, 99), (17, 0), (71, 0), (93, 0), (-1, 0), (500, 0)],
)
async def test_what_is_not_served_closes_the_connection(
    dialog: Dialog, key: int, version: int
) -> None:
    frame = memoryview(bytearray(struct.pack(">ihhih", 10, key, version, 7, -1)))
    with pytest.raises(PeerError):
        dialog.session.receive(frame)


@given(st.binary(max_size=200), st.sampled_from([each.key for each in APIS]), st.integers(-1, 19))
def test_no_bytes_do_more_than_close_the_connection(body: bytes, key: int, version: int) -> None:
    # Nothing reaches a handler here: all of a broker that a session asks for is where to count.
    frame = struct.pack(">ihhih", 10 + len(body), key, version, 7, -1) + body
    handler = HANDLERS.get(key)
    broker = SimpleNamespace(memory=Memory(MEMORY_BYTES_LEAST))
    session = Dialog(broker).session  # type: ignore[arg-type]  # it is not reached
    if handler is not None and version in handler.versions:
        try:
            handler.api.request.decode(memoryview(frame), version, 14)
        except PeerError:
            with pytest.raises(PeerError):
                session.receive(memoryview(bytearray(frame)))
    elif key != 18:
        with pytest.raises(PeerError):
            session.receive(memoryview(bytearray(frame)))


async def test_every_served_version_answers_an_empty_request(dialog: Dialog) -> None:
    await dialog.create_topic()
    for handler in HANDLERS.values():
        for version in range(handler.versions.first, handler.versions.last + 1):
            fields = {"acks": 1} if handler.api.name == "Produce" else {}
            await dialog.ask(handler.api.name, version, **fields)


async def test_produce_overtakes_a_fetch_that_waits(dialog: Dialog) -> None:
    await dialog.create_topic()
    waiting = dialog.send("Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=60_000))
    await dialog.produce(encode_batch([Record(b"value")]))
    response = await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    assert b"value" in bytes(response.responses[0].partitions[0].records)


async def test_fetches_follow_one_another(dialog: Dialog) -> None:
    # The answer of one may take 55 MiB, and a client may ask for a thousand before it reads any.
    await dialog.create_topic()
    await dialog.produce(encode_batch([Record(b"value")]))
    waiting = dialog.send("Fetch", 12, **dialog.fetch_fields((0, 1), max_wait_ms=60_000))
    behind = dialog.send("Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=0))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not behind.done()
    await dialog.produce(encode_batch([Record(b"value")]))
    await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    await asyncio.wait_for(behind, PATIENCE_SECONDS)


async def test_other_requests_wait_for_those_before(dialog: Dialog) -> None:
    await dialog.create_topic()
    fetching = dialog.send("Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=60_000))
    deleting = dialog.send(
        "DeleteTopics", 6, topics=[api("DeleteTopics").request.DeleteTopicState(name="orders")]
    )
    listing = dialog.send("Metadata", 12, topics=None)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not deleting.done()
    await Dialog(dialog.broker).produce(encode_batch([Record(b"value")]))
    await asyncio.wait_for(fetching, PATIENCE_SECONDS)
    assert (await deleting).responses[0].error_code == 0
    assert (await listing).topics == []


async def test_a_client_that_is_gone_does_not_wait_on(dialog: Dialog) -> None:
    await dialog.create_topic()
    fetching = dialog.send("Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=60_000))
    await asyncio.sleep(0)
    dialog.session.close()
    await asyncio.wait_for(fetching, PATIENCE_SECONDS)


async def test_requests_behind_a_waiting_fetch_cost_the_same_each(dialog: Dialog) -> None:
    # A client may send a thousand before it reads an answer, and forty clients may do so at once.
    await dialog.create_topic()
    few, many = await steps_behind_a_fetch(dialog, 111), await steps_behind_a_fetch(dialog, 999)
    assert many < 9.5 * few


async def steps_behind_a_fetch(dialog: Dialog, count: int) -> int:
    """Have requests wait, then begin; return how many functions were called meanwhile."""
    end = (await dialog.fetch(0)).high_watermark
    fetch = dialog.fetch_fields((0, end), max_wait_ms=60_000)
    frames = [dialog.frame("Fetch", 12, api("Fetch").request(**fetch))]
    frames += [
        dialog.frame("Metadata", 12, api("Metadata").request(topics=[])) for _ in range(count)
    ]
    dialog.unawaited.clear()
    before = len(asyncio.all_tasks())
    calls = itertools.count()
    sys.setprofile(lambda *_: next(calls))
    try:
        for frame in frames:
            dialog.take(frame)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == before, "not even the fetch needs a task to wait"
        assert dialog.unawaited == []
        batch = encode_batch([Record(b"value")])
        await Dialog(dialog.broker).produce(batch)
        while len(dialog.unawaited) < len(frames):
            await asyncio.sleep(0)
    finally:
        sys.setprofile(None)
    return next(calls)


async def test_an_answer_that_is_there_leaves_in_the_same_turn(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        dialog.take(dialog.frame("Metadata", 12, api("Metadata").request(topics=None)))
        assert len(dialog.unawaited) == 1
