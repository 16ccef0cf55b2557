"""First bytes of real clients at a wrong port are named, and at their own port they are not."""

from __future__ import annotations

import pytest

from penstock.server.recognise import RECOGNISED_BYTES, misplaced, recognise, unknown

KAFKA_API_VERSIONS = bytes.fromhex("00000021001200040000000100077264") + bytes(21)
KAFKA_METADATA = bytes.fromhex("0000001700030000000000010005") + b"kafka" + bytes(8)
PULSAR_CONNECT = bytes.fromhex("000000270000002308021a1f0a06322e") + bytes(27)
IGGY_REGISTER = bytes(16) + bytes(240)
IGGY_PING_OF_0_5 = bytes.fromhex("0400000001000000")
IGGY_LOGIN_OF_0_5 = bytes.fromhex("1300000026000000") + b"\x04iggy\x04iggy" + bytes(5)
TLS_CLIENT_HELLO = bytes.fromhex("16030102000100 01fc0303")
POSTGRES_STARTUP = bytes.fromhex("0000002900030000") + b"user\0someone\0database\0some\0\0"
OURS = {
    "Kafka": [KAFKA_API_VERSIONS, KAFKA_METADATA],
    "Pulsar": [PULSAR_CONNECT],
    "Iggy": [IGGY_REGISTER, IGGY_PING_OF_0_5, IGGY_LOGIN_OF_0_5],
}
OTHERS = {
    "HTTP": [b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "TLS": [TLS_CLIENT_HELLO],
    "PostgreSQL": [POSTGRES_STARTUP, bytes.fromhex("0000000804d2162f")],
    "Redis": [b"*1\r\n$4\r\nPING\r\n", b"PING\r\n", b"*3\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"],
    "SSH": [b"SSH-2.0-OpenSSH_9.9\r\n"],
    "AMQP": [b"AMQP\x00\x00\x09\x01"],
    "MQTT": [bytes.fromhex("100c00044d51545404020 03c0000".replace(" ", ""))],
    "the PROXY protocol": [b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n", b"\r\n\r\n\0\r\nQUIT\n!"],
}
PORTS = {"kafka": 9092, "pulsar": 6650, "iggy": 8090}


@pytest.mark.parametrize(
    ("name", "head"), [(name, head) for name, heads in (OURS | OTHERS).items() for head in heads]
)
def test_each_protocol_is_known_by_its_first_bytes(name: str, head: bytes) -> None:
    assert recognise(head[:RECOGNISED_BYTES]) == name


@pytest.mark.parametrize("head", [heads[0] for heads in OURS.values()])
def test_nothing_is_said_before_it_is_certain(head: bytes) -> None:
    """A first frame that comes byte by byte is never taken for another protocol's."""
    own = recognise(head)
    assert {recognise(head[:size]) for size in range(len(head))} <= {None, own}


@pytest.mark.parametrize(
    "head", [b"", b"\xff" * 16, bytes(8), b"GETTING", b"\x16\x03\x01", b"HELLOworld"]
)
def test_noise_is_not_named(head: bytes) -> None:
    assert recognise(head) is None


def test_what_is_said_names_the_right_port() -> None:
    said = misplaced("Pulsar", "kafka", PORTS)
    assert said == "this looks like a client of Pulsar, which has port 6650; this one is Kafka's"
    assert "switch TLS off" in misplaced("TLS", "kafka", PORTS)
    assert "no client of Iggy? The ports are: Kafka 9092" in unknown("iggy", PORTS)
    assert misplaced("Redis", "iggy", PORTS).startswith("this is Redis, which is not spoken here")
