"""Brokers of Apache Kafka that are reached over TLS, with a log-in, and know who may do what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from apache_kafka import ApacheKafka
from penstock.clients.kafka.transactions import WRITER_PREFIX
from tls_proxy import self_signed
from versus.processes import free_port

WRITER, PASSWORD = "writer", "secret"

_MODULES = "org.apache.kafka.common.security"
_PLAIN, _SCRAM = (f"{_MODULES}.{each}LoginModule" for each in ("plain.Plain", "scram.Scram"))
MODULES = {"PLAIN": _PLAIN, "SCRAM-SHA-256": _SCRAM, "SCRAM-SHA-512": _SCRAM}

_PROTOCOLS = "listener.security.protocol.map"
_LITERAL, _PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED


class SecuredKafka(ApacheKafka):
    """Two brokers with a port for TLS, and one for TLS with a log-in.

    Who comes by `kafka`, without either, may do everything, as may who shows no name over TLS.
    """

    FORMATTING: ClassVar[Sequence[str]] = [
        word
        for mechanism in list(MODULES)[1:]
        for word in ("--add-scram", f"{mechanism}=[name={WRITER},password={PASSWORD}]")
    ]

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, brokers=2)
        self.certificate, key = self_signed(folder)
        self._keys = folder / "keys.pem"
        self._keys.write_text(key.read_text() + self.certificate.read_text())
        self._secured = [{"SSL": free_port(), "SASL_SSL": free_port()} for _ in range(2)]

    def address(self, listener: str) -> str:
        """Return where the first broker has that listener, SSL or SASL_SSL."""
        return f"localhost:{self._secured[0][listener]}"

    def settings(self, number: int, folder: Path) -> dict[str, object]:
        settings = super().settings(number, folder)
        ports = self._secured[number].items()
        listeners = "".join(f",{name}://localhost:{port}" for name, port in ports)
        protocols = "".join(f",{name}:{name}" for name, _ in ports)
        known = f'{_PLAIN} required user_{WRITER}="{PASSWORD}"'
        modules = {**dict.fromkeys(MODULES, f"{_SCRAM} required"), "PLAIN": known}
        settings["listeners"] = f"{settings['listeners']}{listeners}"
        settings[_PROTOCOLS] = f"{settings[_PROTOCOLS]}{protocols}"
        return settings | {
            "advertised.listeners": f"PLAINTEXT://{self.addresses[number]}{listeners}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._keys,
            "sasl.enabled.mechanisms": ",".join(MODULES),
            **{
                f"listener.name.sasl_ssl.{name.lower()}.sasl.jaas.config": f"{module};"
                for name, module in modules.items()
            },
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def permit(self, topic: str) -> None:
        """Give the writer the rights that the sink needs, and no other."""
        rights = {
            (ResourceType.TOPIC, topic, _LITERAL): "WRITE READ DESCRIBE DESCRIBE_CONFIGS",
            (ResourceType.TRANSACTIONAL_ID, WRITER_PREFIX, _PREFIXED): "WRITE DESCRIBE",
            (ResourceType.GROUP, WRITER_PREFIX, _PREFIXED): "READ",
        }
        client = AdminClient({"bootstrap.servers": self.kafka})  # Without it, no answer comes.
        made = client.create_acls(
            [
                AclBinding(*of, f"User:{WRITER}", "*", AclOperation[right], AclPermissionType.ALLOW)
                for of, words in rights.items()
                for right in words.split()
            ]
        )
        for each in made.values():
            each.result(30)
