"""Sizes and headers of frames."""

from __future__ import annotations

from struct import pack

import pytest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from kafka_samples import joined
from penstock.kafka.wire import (
    MalformedMessageError,
    api,
    correlation_id_of,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    frame_size,
)


def test_frame_size() -> None:
    assert frame_size(b"\x00\x00\x00", 100) is None
    assert frame_size(b"\x00\x00\x00\x05", 100) == 9
    assert frame_size(memoryview(b"\x00\x00\x00\x64and more"), 100) == 104


@pytest.mark.parametrize(
    "head", [b"\x00\x00\x00\x65", b"\xff\xff\xff\xff", b"GET / HTTP", b"\x16\x03\x01\x02"]
)
def test_sizes_that_are_none(head: bytes) -> None:
    with pytest.raises(MalformedMessageError, match="frame of"):
        frame_size(head, 100)


@pytest.mark.parametrize(
    ("name", "version", "header_version"),
    [
        ("Metadata", 0, 1),
        ("Metadata", 8, 1),
        ("Metadata", 9, 2),
        ("Metadata", 13, 2),
        ("ControlledShutdown", 0, 0),
        ("ControlledShutdown", 1, 1),
        ("ControlledShutdown", 3, 2),
        ("SaslHandshake", 1, 1),
        ("ApiVersions", 2, 1),
        ("ApiVersions", 3, 2),
        ("ApiVersions", 99, 2),
        ("Metadata", -1, 1),
    ],
)
def test_request_header_versions(name: str, version: int, header_version: int) -> None:
    assert api(name).request_header_version(version) == header_version


@pytest.mark.parametrize(
    ("name", "version", "header_version"),
    [("Metadata", 8, 0), ("Metadata", 9, 1), ("ApiVersions", 4, 0), ("SaslHandshake", 1, 0)],
)
def test_response_header_versions(name: str, version: int, header_version: int) -> None:
    assert api(name).response_header_version(version) == header_version


@pytest.mark.parametrize("client_id", [None, "", "a", "clé"])
@pytest.mark.parametrize(
    ("name", "version"), [("Metadata", 1), ("Metadata", 12), ("ControlledShutdown", 1)]
)
def test_request_headers_round_trip(name: str, version: int, client_id: str | None) -> None:
    message = api(name).request()
    frame = joined(encode_request(api(name), version, -5, client_id, message))
    header, decoded = decode_request(frame)
    assert header[:4] == (api(name), version, -5, client_id)
    assert decoded == message


def test_the_first_request_header_has_no_client_id() -> None:
    shutdown = api("ControlledShutdown")
    frame = joined(encode_request(shutdown, 0, 3, "left out", shutdown.request(broker_id=8)))
    assert frame == pack(">ihhii", 12, 7, 0, 3, 8)
    header, request = decode_request(frame)
    assert header.client_id is None
    assert request.broker_id == 8


def test_tagged_fields_of_a_header_are_passed_over() -> None:
    frame = pack(">ihhih", 0, 3, 12, 1, 1) + b"c" + b"\x01\x07\x02ab"
    header = decode_request_header(frame)
    assert header.body_start == len(frame)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "no request header"),
        (pack(">ihh", 4, 3, 1), "no request header"),
        (pack(">ihhi", 8, 95, 0, 1), "API key 95"),
        (pack(">ihhi", 8, -1, 0, 1), "API key -1"),
        (pack(">ihhi", 8, 3, 1, 1), "client id"),
        (pack(">ihhih", 8, 3, 1, 1, -2), "client id of -2"),
        (pack(">ihhih", 8, 3, 1, 1, 9) + b"short", "client id of 9 bytes, 5 are left"),
        (pack(">ihhih", 8, 3, 1, 1, 1) + b"\xff", "client id: .utf-8"),
        (pack(">ihhih", 8, 3, 9, 1, -1), "cut off in its tagged fields"),
        (pack(">ihhih", 8, 3, 9, 1, -1) + b"\x01", "cut off in its tagged fields"),
        (pack(">ihhih", 8, 3, 9, 1, -1) + b"\x01\x00\x05", "tagged field 0: length 5"),
    ],
)
def test_request_headers_that_are_none(frame: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessageError, match=reason):
        decode_request_header(frame)


def test_responses_as_kafka_python_reads_them() -> None:
    metadata = api("Metadata")
    for version in versions_of(metadata.versions.last):
        parts = encode_response(metadata, version, 9, metadata.response(controller_id=4))
        theirs = MetadataResponse.decode(joined(parts), version=version, header=True, framed=True)
        assert theirs.header.correlation_id == 9
        assert theirs.controller_id == (4 if version else -1)


def test_api_versions_answers_always_have_the_first_header() -> None:
    versions = api("ApiVersions")
    key = versions.response.ApiVersion(api_key=3, max_version=13)
    for version in versions_of(4):
        parts = encode_response(versions, version, 9, versions.response(api_keys=[key]))
        frame = joined(parts)
        theirs = ApiVersionsResponse.decode(frame, version=version, header=True, framed=True)
        assert theirs.api_keys[0].max_version == 13
        correlation_id, ours = decode_response(versions, version, frame)
        assert (correlation_id, ours.api_keys) == (9, [key])


def versions_of(last: int) -> range:
    return range(last + 1)


def test_responses_cut_off() -> None:
    metadata = api("Metadata")
    frame = joined(encode_response(metadata, 12, 1, metadata.response()))
    assert correlation_id_of(frame) == 1
    for size in range(len(frame)):
        with pytest.raises(MalformedMessageError):
            decode_response(metadata, 12, frame[:size])
