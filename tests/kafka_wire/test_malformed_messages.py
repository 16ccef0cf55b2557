"""Bytes that are no message: one error, and no memory taken for what they claim."""

from __future__ import annotations

import random
import tracemalloc
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_samples import joined, message_types, random_message, versions
from penstock.kafka.wire import APIS, MalformedMessageError, MessageType, Struct, api
from penstock.limits import KAFKA_REQUEST_ELEMENTS
from penstock.session import PeerError

TYPES = [
    (message_type, version)
    for each in APIS
    for _, message_type in message_types(each)
    for version in versions(each)
]


def decode_or_refuse(message_type: MessageType[Any], data: bytes, version: int) -> Struct | None:
    """Any error but the documented one fails the test."""
    try:
        return message_type.decode(data, version)
    except MalformedMessageError:
        return None


@pytest.mark.parametrize("each", APIS, ids=lambda each: each.name)
def test_cut_off_anywhere(each: object) -> None:
    chance = random.Random(4)
    for _, message_type in message_types(each):  # type: ignore[arg-type]
        for version in versions(each):  # type: ignore[arg-type]
            message = random_message(message_type, version, chance)
            encoded = joined(message_type.encode(message, version))
            for size in {*range(min(len(encoded), 12)), len(encoded) // 2, len(encoded) - 1}:
                if 0 <= size < len(encoded):
                    with pytest.raises(MalformedMessageError):
                        message_type.decode(encoded[:size], version)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(TYPES), st.binary(max_size=80))
def test_any_bytes(chosen: tuple[MessageType[Any], int], data: bytes) -> None:
    decode_or_refuse(chosen[0], data, chosen[1])
    decode_or_refuse(chosen[0], memoryview(bytearray(data)), chosen[1])  # type: ignore[arg-type]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(TYPES), st.randoms(use_true_random=False))
def test_damaged_messages(chosen: tuple[MessageType[Any], int], chance: random.Random) -> None:
    message_type, version = chosen
    encoded = bytearray(
        joined(message_type.encode(random_message(message_type, version, chance), version))
    )
    for _ in range(chance.randint(1, 4)):
        if encoded:
            encoded[chance.randrange(len(encoded))] = chance.choice([0, 1, 127, 128, 254, 255])
    decode_or_refuse(message_type, bytes(encoded), version)


def _metadata_request(version: int, topics: bytes) -> Struct:
    return api("Metadata").request.decode(topics, version)


@pytest.mark.parametrize(
    ("version", "data", "reason"),
    [
        (0, pack(">i", 2**31 - 1), "topics: length 2147483647 with 0 bytes left"),
        (0, pack(">i", -2), "topics: length -2"),
        (0, pack(">i", -1), "topics: length -1"),  # null only from version 1 on
        (1, pack(">i", -2), "topics: length -2"),
        (1, pack(">ih", 1, 100) + b"short", "name: length 100 with 5 bytes left"),
        (1, pack(">ih", 1, -1), "name: length -1"),
        (1, pack(">ih", 1, 1) + b"\xff", "utf-8"),
        (9, b"\xff\xff\xff\xff\x0f", "topics: length 4294967294"),
        (9, b"\xff\xff\xff\xff\x1f", "wider than 32 bits"),
        (9, b"\x80\x80\x80\x80\x80\x01", "wider than 32 bits"),
        (9, b"\x02\x00", "length 1 with 1 bytes left"),
        (9, b"\x02\x00\x00\x00\x00\x00", "name: length -1"),
        (9, b"\x00\x00\x00\x00\x01\x05\x7f", "tagged field 5: length 127 with 0 bytes left"),
    ],
)
def test_lengths_and_counts(version: int, data: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessageError, match=reason):
        _metadata_request(version, data)


def test_an_array_of_numbers_is_measured_too() -> None:
    leave = pack(">h", 0) + pack(">i", 1) + pack(">h", 1) + b"t" + pack(">i", 2**30)
    with pytest.raises(MalformedMessageError, match="partition"):
        api("OffsetFetch").request.decode(leave, 0)


def test_no_memory_for_what_is_not_there() -> None:
    hostile = [
        (api("Metadata").request, 0, pack(">i", 2**31 - 1)),
        (api("Metadata").request, 9, b"\xff\xff\xff\xff\x0f" + bytes(100)),
        (api("Produce").request, 0, pack(">hiihi", 1, 1, 1, 0, 2**31 - 1)),
        (api("SaslAuthenticate").request, 0, pack(">i", 2**31 - 1)),
        (api("SaslAuthenticate").request, 2, b"\xff\xff\xff\xff\x0f"),
        (api("LeaderAndIsr").request, 0, pack(">iiii", 0, 0, 2**31 - 1, 0)),
        # Tagged fields: a count of 4 thousand million, then one that claims 4 GB.
        (api("ApiVersions").request, 3, b"\x01\x01\xff\xff\xff\xff\x0f\x00\xff\xff\xff\xff\x0f"),
    ]
    for message_type, version, data in hostile:
        decode_or_refuse(message_type, data, version)  # compiled before the memory is measured
    tracemalloc.start()
    for message_type, version, data in hostile:
        assert decode_or_refuse(message_type, data, version) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_a_known_tagged_field_fills_its_size() -> None:
    # Produce response v10: CurrentLeader (tag 0) of 4+4+1 bytes, said to be 10.
    response = api("Produce").response
    leader = response.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    partition = response.PartitionProduceResponse(current_leader=leader)
    topic = response.TopicProduceResponse(partition_responses=[partition])
    encoded = bytearray(joined(response.encode(response(responses=[topic]), 10)))
    tagged = encoded.index(b"\x01\x00\x09" + pack(">ii", 1, 2))
    encoded[tagged + 2] = 10
    with pytest.raises(MalformedMessageError, match="tagged field 0"):
        response.decode(encoded, 10)
    encoded[tagged + 2] = 100
    with pytest.raises(MalformedMessageError, match="length 100"):
        response.decode(encoded, 10)


def test_the_error_closes_the_connection() -> None:
    assert issubclass(MalformedMessageError, PeerError)


@pytest.mark.parametrize("count", [KAFKA_REQUEST_ELEMENTS, KAFKA_REQUEST_ELEMENTS + 1])
@pytest.mark.parametrize("version", [0, 12])
def test_a_request_of_too_many_elements_is_not_built(count: int, version: int) -> None:
    # Each element is six bytes on the wire and some hundred in memory.
    produce = api("Produce").request
    parts = [produce.PartitionProduceData(records=None) for _ in range(count - 1)]
    request = produce(topic_data=[produce.TopicProduceData(partition_data=parts)])
    data = b"".join(map(bytes, produce.encode(request, version)))
    if count <= KAFKA_REQUEST_ELEMENTS:
        assert len(produce.decode(data, version).topic_data[0].partition_data) == count - 1
    else:
        with pytest.raises(MalformedMessageError, match="too many"):
            produce.decode(data, version)
