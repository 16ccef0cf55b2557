"""Where the servers are and how they are reached, as options say it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from penstock.clients.access import LoginError, Password, Tls, Token
from penstock.clients.kafka import sasl
from penstock.pipeline.clusters.address import Address, Protocol, parse_address
from penstock.pipeline.source.option_values import OptionError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def parsed(servers: str, **given: str) -> Address:
    options = {name.replace("_", "."): value for name, value in given.items()}
    return parse_address({"servers": servers, **options}, "servers", "kafka.bootstrap.servers")


@pytest.mark.parametrize(
    ("servers", "protocol", "has_tls"),
    [
        ("a:1,b:2", Protocol.KAFKA, False),
        ("kafka://a:1,b:2", Protocol.KAFKA, False),
        ("kafka+ssl://a:1,b:2", Protocol.KAFKA, True),
        ("PULSAR://a:1,b:2", Protocol.PULSAR, False),
        ("pulsar+ssl://a:1,b:2", Protocol.PULSAR, True),
        ("iggy://a:1,b:2", Protocol.IGGY, False),
        ("iggy+tls://a:1,b:2", Protocol.IGGY, True),
    ],
)
def test_an_address_says_the_protocol(servers: str, protocol: Protocol, has_tls: bool) -> None:
    found = parsed(servers)
    assert (found.protocol, found.servers) == (protocol, "a:1,b:2")
    assert (found.access.tls == Tls()) is has_tls


def test_kafkas_own_options_say_how_one_logs_in() -> None:
    jaas = f'{SCRAM} required username="ann" password="a\\"b;c" ;'
    options = {"kafka_sasl_mechanism": "SCRAM-SHA-256", "kafka_sasl_jaas_config": jaas}
    found = parsed("a:1", **options, kafka_security_protocol="SASL_SSL").access
    assert found.login == Password("ann", 'a"b;c', "SCRAM-SHA-256")
    assert found.tls == Tls()
    assert parsed("a:1", **options).access.tls is None
    assert 'a"b;c' not in repr(found)


def test_tokens_and_passwords_are_for_the_others() -> None:
    assert parsed("pulsar://a:1", token="t").access.login == Token("t")
    assert parsed("iggy://a:1", token="t").access.login == Token("t")
    found = parsed("iggy://a:1", user="u", password="p").access.login
    assert found == Password("u", "p")
    assert "secret" not in repr(Token("secret"))


@pytest.mark.parametrize(
    ("servers", "given", "message"),
    [
        ("http://a:1", {}, "http:// is unknown; known are kafka://"),
        ("kafka://a", {}, "'a' is not of the form host:port"),
        ("a:1", {"user": "u"}, "user is for pulsar:// and iggy://; Kafka's log-in"),
        ("pulsar://a:1", {"user": "u", "password": "p"}, "one logs in with a token"),
        ("iggy://a:1", {"user": "u", "token": "t"}, "or token alone"),
        ("iggy://a:1", {"token": " "}, "token is empty"),
        ("pulsar://a:1", {"kafka_group_id": "g"}, "kafka.group.id is for Kafka's protocol"),
        ("a:1", {"kafka_sasl_jaas_config": "x"}, "belong together"),
        ("a:1", {"kafka_security_protocol": "SASL_SSL"}, "belong together"),
        ("kafka+ssl://a:1", {"kafka_security_protocol": "PLAINTEXT"}, "asks for TLS"),
        ("a:1", {"kafka_ssl_keystore_location": "x"}, "no log-in by certificate"),
        ("a:1", {"kafka_ssl_truststore_location": "x"}, "PEM as tlsCaFile"),
        (
            "a:1",
            {"kafka_sasl_mechanism": "GSSAPI", "kafka_sasl_jaas_config": "x"},
            "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            "a:1",
            {"kafka_sasl_mechanism": "PLAIN", "kafka_sasl_jaas_config": "hidden"},
            "must be of the form MODULE required username=",
        ),
        (
            "a:1",
            {
                "kafka_sasl_mechanism": "PLAIN",
                "kafka_sasl_jaas_config": f'{SCRAM} required username="u" password="p";',
            },
            "which is not for kafka.sasl.mechanism PLAIN",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(
    servers: str, given: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        parsed(servers, **given)
    assert "hidden" not in str(raised.value)


def test_a_file_of_certificates_is_read_before_anything_else(tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty.pem", tmp_path / "binary.pem"
    empty.write_text("no certificate")
    binary.write_bytes(b"\xff\xfe")
    for path, message in (
        (tmp_path / "missing.pem", "can't be read"),
        (empty, "holds no certificates"),
        (binary, "no certificates"),
    ):
        with pytest.raises(OptionError, match=message):
            parsed("kafka+ssl://a:1", tlscafile=str(path))


def test_scram_is_as_its_rfc_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    nonce = base64.b64decode("rOprNGfwEbeRWgbNEkqO")
    monkeypatch.setattr(sasl.secrets, "token_bytes", lambda _: nonce)
    # RFC 7677, section 3.
    both = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    expected = [
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        f"c=biws,r={both},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode(),
    ]
    answers = [
        f"r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(),
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ]
    said: list[bytes] = []

    def exchange(message: bytes) -> bytes:
        said.append(message)
        return answers[len(said) - 1]

    login = Password("user", "pencil", "SCRAM-SHA-256")
    sasl.log_in(login, exchange)
    assert said == expected
    said.clear()
    answers[1] = b"v=AAAA"
    with pytest.raises(LoginError, match="does not know the password either"):
        sasl.log_in(login, exchange)
