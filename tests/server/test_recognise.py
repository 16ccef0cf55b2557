"""First bytes of real clients on a wrong port are named, and on their own port they are not."""

from __future__ import annotations

import pytest

from penstock.server.recognise import never_ours, other_protocol

KAFKA_API_VERSIONS = bytes.fromhex("00000021001200040000000100077264") + bytes(21)
PULSAR_CONNECT = bytes.fromhex("000000270000002308021a1f0a06322e") + bytes(27)
IGGY_REGISTER = bytes(16) + bytes(240)
TLS_CLIENT_HELLO = bytes.fromhex("16030102000100 01fc0303")


@pytest.mark.parametrize(
    "request_line", [b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n"]
)
def test_http_is_never_ours(request_line: bytes) -> None:
    assert "HTTP" in (never_ours(request_line) or "")


def test_tls_is_never_ours() -> None:
    assert "TLS" in (never_ours(TLS_CLIENT_HELLO) or "")


@pytest.mark.parametrize("head", [KAFKA_API_VERSIONS, PULSAR_CONNECT, IGGY_REGISTER, b"", b"GE"])
def test_our_own_protocols_are_not_refused(head: bytes) -> None:
    assert never_ours(head) is None


@pytest.mark.parametrize(
    ("head", "own", "others"),
    [
        (KAFKA_API_VERSIONS, "kafka", ["pulsar", "iggy"]),
        (PULSAR_CONNECT, "pulsar", ["kafka", "iggy"]),
        (IGGY_REGISTER, "iggy", ["kafka", "pulsar"]),
    ],
)
def test_a_client_of_another_protocol_is_named(head: bytes, own: str, others: list[str]) -> None:
    assert other_protocol(head, own) is None
    for port in others:
        assert f"a client of {own.capitalize()}" in (other_protocol(head, port) or "")


def test_noise_is_not_named() -> None:
    assert other_protocol(b"\xff" * 16, "kafka") is None
    assert other_protocol(b"", "kafka") is None
