"""Options that begin with `kafka.`: those of Kafka's consumer, as far as they mean something here.

Each is understood, or has no effect for a reason that is logged, or is refused with the reason.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from penstock.pipeline.clusters import sasl_options
from penstock.pipeline.source.option_values import Given, OptionError, choice, count

logger = logging.getLogger(__name__)

PREFIX: Final = "kafka."
SERVERS: Final = "kafka.bootstrap.servers"
GROUP: Final = "kafka.group.id"
ISOLATION: Final = "kafka.isolation.level"
CLIENT: Final = "kafka.client.id"
TIMEOUT: Final = "kafka.request.timeout.ms"

UNDERSTOOD: Final = (SERVERS, GROUP, ISOLATION, CLIENT, TIMEOUT, *sasl_options.UNDERSTOOD)

_CLIENT_ID: Final = "penstock-spark"
_TIMEOUT_MS: Final = 30_000

_NO_MEMBER: Final = "no consumer group is joined"
_OWN_SIZES: Final = "tasks read in pieces of a size that suits Spark"
_OWN_PATIENCE: Final = "tasks wait as kafkaConsumer.pollTimeoutMs says"

NO_EFFECT: Final = {
    "allow.auto.create.topics": "a reader creates no topics",
    "check.crcs": "checksums are always verified",
    "client.dns.lookup": "the addresses are used as they are given",
    "client.rack": "there is one place to read from",
    "connections.max.idle.ms": "a task keeps its connection as long as it runs",
    "default.api.timeout.ms": _OWN_PATIENCE,
    "exclude.internal.topics": "topics that Kafka keeps for itself are never matched",
    "fetch.max.bytes": _OWN_SIZES,
    "fetch.max.wait.ms": "what is read is there already",
    "fetch.min.bytes": "what is read is there already",
    "group.instance.id": _NO_MEMBER,
    "group.protocol": _NO_MEMBER,
    "heartbeat.interval.ms": _NO_MEMBER,
    "max.partition.fetch.bytes": _OWN_SIZES,
    "max.poll.interval.ms": _NO_MEMBER,
    "max.poll.records": _OWN_SIZES,
    "metadata.max.age.ms": "the driver asks for topics whenever it plans",
    "partition.assignment.strategy": _NO_MEMBER,
    "receive.buffer.bytes": "the operating system chooses",
    "reconnect.backoff.max.ms": _OWN_PATIENCE,
    "reconnect.backoff.ms": _OWN_PATIENCE,
    "retry.backoff.max.ms": _OWN_PATIENCE,
    "retry.backoff.ms": _OWN_PATIENCE,
    "send.buffer.bytes": "the operating system chooses",
    "session.timeout.ms": _NO_MEMBER,
    "socket.connection.setup.timeout.ms": _OWN_PATIENCE,
}
"""What a job that moves over may have set, and why nothing has to be done for it."""

REFUSED: Final = {
    "auto.offset.reset": "set startingOffsets instead; a stream goes on from its checkpoint",
    "enable.auto.commit": "progress is committed behind each batch: set kafka.group.id",
    "interceptor.classes": "they are classes of Java's consumer, which is not used",
    "key.deserializer": "keys are bytes: use CAST or from_json on the column",
    "metric.reporters": "they are classes of Java's consumer, which is not used",
    "value.deserializer": "values are bytes: use CAST or from_json on the column",
}
"""What would be understood wrongly if it were ignored."""


class Isolation(StrEnum):
    """Which messages of transactions are read."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True)
class KafkaOptions:
    """How the broker is spoken to."""

    client_id: str
    timeout_s: float
    group: str | None
    """The group as which progress is committed."""
    committed: bool
    """Whether messages of open and aborted transactions are left out."""


def parse_kafka(given: Given) -> KafkaOptions:
    """Check and convert what begins with `kafka.`; raises OptionError."""
    for name in given:
        if name.startswith(PREFIX) and name not in UNDERSTOOD:
            _judge(name)
    return KafkaOptions(
        client_id=given.get(CLIENT, "").strip() or _CLIENT_ID,
        timeout_s=(count(given, TIMEOUT) or _TIMEOUT_MS) / 1000,
        group=_group(given),
        committed=choice(given, ISOLATION, Isolation.COMMITTED) is Isolation.COMMITTED,
    )


def is_known(name: str) -> bool:
    """Whether Kafka's consumer has such an option, so that `parse_kafka` judges it."""
    config = name.removeprefix(PREFIX)
    is_security = config.startswith(("ssl.", "sasl.", "security."))
    return name.startswith(PREFIX) and (config in NO_EFFECT or config in REFUSED or is_security)


def _judge(name: str) -> None:
    config = name.removeprefix(PREFIX)
    if config in REFUSED:
        raise OptionError(f"{name} can't be set: {REFUSED[config]}")
    if config in NO_EFFECT:
        logger.info("%s has no effect: %s", name, NO_EFFECT[config])


def _group(given: Given) -> str | None:
    group = given.get(GROUP)
    if group is not None and not group.strip():
        raise OptionError(f"{GROUP} must not be empty: name a group, or leave it away")
    return group
