"""The options of the sink `penstock`, named and meant as those of Spark's Kafka sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.pipeline.clusters import address, sasl_options
from penstock.pipeline.clusters.address import Address, Protocol, parse_address
from penstock.pipeline.source.kafka_options import SERVERS as KAFKA_SERVERS
from penstock.pipeline.source.option_values import OptionError, refuse_unknown
from penstock.pipeline.source.options import SERVERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

COMPRESSION: Final = "kafka.compression.type"
BATCH_SIZE: Final = "kafka.batch.size"
TIMEOUT: Final = "kafka.transaction.timeout.ms"
ACKS: Final = "kafka.acks"
PULSAR_COMPRESSION: Final = "pulsar.producer.compressionType"
PULSAR_BATCH_SIZE: Final = "pulsar.producer.batchingMaxBytes"
PULSAR_TIMEOUT: Final = "pulsar.transactionTimeoutMs"
AT_LEAST_ONCE: Final = "atLeastOnce"
FAIL_ON_DATA_LOSS: Final = "failOnDataLoss"
APPLICATION: Final = "txnAppId"
VERSION: Final = "txnVersion"
"""As Delta's: a batch write that may be done again names itself by both."""

PARTITIONERS: Final = ("kafka", "pulsar", "iggy")
"""Whose clients' way to choose a partition by the key; see `hashing`."""

CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""By their numbers in a batch's attributes."""

PULSAR_CODECS: Final = {"none": 0, "lz4": 1, "zlib": 2, "zstd": 3, "snappy": 4}
"""By their numbers in an entry's metadata."""

NAMES: Final = (
    SERVERS,
    KAFKA_SERVERS,
    "topic",
    "includeHeaders",
    "partitioner",
    AT_LEAST_ONCE,
    FAIL_ON_DATA_LOSS,
    APPLICATION,
    VERSION,
    COMPRESSION,
    BATCH_SIZE,
    TIMEOUT,
    ACKS,
    PULSAR_COMPRESSION,
    PULSAR_BATCH_SIZE,
    PULSAR_TIMEOUT,
    *address.NAMES,
    *sasl_options.UNDERSTOOD,
)
CHECKPOINT: Final = "checkpointLocation"
QUERY_NAME: Final = "queryName"
_OF_SPARK: Final = (CHECKPOINT, "path", QUERY_NAME)
"""Meant for Spark itself, which hands them on."""

_WRITER_CHARACTERS: Final = 190
"""What a broker takes for a writer's name, less what stands before it."""

_MOST: Final = (1 << 31) - 1

BATCH_BYTES: Final = 1_000_000
PULSAR_BATCH_BYTES: Final = 128 << 10
"""As Pulsar's clients have it where nothing else is set."""


@dataclass(frozen=True)
class SinkOptions:
    """Where and how to write."""

    address: Address
    topic: str | None
    """The topic of all rows; None where each row names its own."""
    partitioner: str
    codec: str
    batch_bytes: int
    at_least_once: bool
    """Whether rows may be there twice, where the server has a way to write them once."""
    fail_on_data_loss: bool
    """Whether a batch is refused that was written when it had other rows than it has now."""
    timeout_ms: int | None
    """How long a transaction may stay open; None for as long as suits the server."""
    application: str | None
    version: int
    checkpoint: str | None
    """Where a stream's checkpoint is; None where a setting of Spark's says it."""
    query_name: str | None

    @property
    def servers(self) -> str:
        """`host:port`, several with commas."""
        return self.address.servers


def parse(options: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """Check and convert the options of one write; raises OptionError."""
    given = {name.lower(): value for name, value in options.items()}
    servers = parse_address(given, SERVERS, KAFKA_SERVERS)
    refuse_unknown(given, NAMES, _OF_SPARK)
    at_least_once = _may_repeat(given, servers.protocol)
    _choice(given, "includeHeaders", ["true", "false"])
    _choice(given, ACKS, ["all", "-1"])
    application, version = _application(given, streaming=streaming)
    if servers.protocol is Protocol.PULSAR and at_least_once and version > _MOST:
        raise OptionError(
            f"{VERSION} is at most {_MOST} with {AT_LEAST_ONCE} to pulsar://, for messages are "
            f"numbered by it: leave {AT_LEAST_ONCE} out, or number the writes from 0 on"
        )
    codec, batch_bytes = _batches(given, servers.protocol)
    timeout = PULSAR_TIMEOUT if servers.protocol is Protocol.PULSAR else TIMEOUT
    return SinkOptions(
        address=servers,
        topic=_topic(given),
        partitioner=_choice(given, "partitioner", PARTITIONERS, servers.protocol),
        codec=codec,
        batch_bytes=batch_bytes,
        at_least_once=at_least_once,
        fail_on_data_loss=_choice(given, FAIL_ON_DATA_LOSS, ["true", "false"]) == "true",
        timeout_ms=_count(given, timeout, least=1_000),
        application=application,
        version=version,
        checkpoint=given.get(CHECKPOINT.lower()),
        query_name=given.get(QUERY_NAME.lower()),
    )


def _topic(given: Mapping[str, str]) -> str | None:
    topic = given.get("topic")
    if topic is not None and not topic.strip():
        raise OptionError("topic is empty: name a topic, or leave it out and have a column topic")
    return topic


def _application(given: Mapping[str, str], *, streaming: bool) -> tuple[str | None, int]:
    application, version = given.get(APPLICATION.lower()), given.get(VERSION.lower())
    if streaming and (application is not None or version is not None):
        raise OptionError(f"{APPLICATION} and {VERSION} are for batch writes: a stream has its own")
    if (application is None) != (version is None):
        raise OptionError(f"give both of {APPLICATION} and {VERSION}, or neither")
    if application is None or version is None:
        return None, 0
    if not 0 < len(application) <= _WRITER_CHARACTERS or "/" in application:
        raise OptionError(f"{APPLICATION} has 1 to {_WRITER_CHARACTERS} characters and no slash")
    if not version.strip().isdigit():
        raise OptionError(f"{VERSION} must be a whole number, not {version!r}")
    return application, int(version)


def _batches(given: Mapping[str, str], protocol: Protocol) -> tuple[str, int]:
    """Return the codec of batches, and the bytes that they have at most."""
    if protocol is Protocol.PULSAR:
        codec = _choice(given, PULSAR_COMPRESSION, PULSAR_CODECS)
        return codec, _count(given, PULSAR_BATCH_SIZE) or PULSAR_BATCH_BYTES
    return _choice(given, COMPRESSION, CODECS), _count(given, BATCH_SIZE) or BATCH_BYTES


def _may_repeat(given: Mapping[str, str], protocol: Protocol) -> bool:
    """Return whether rows may be there twice. Raises OptionError."""
    pulsars = [name for name in given if name.startswith("pulsar.")]
    if protocol is not Protocol.PULSAR and pulsars:
        raise OptionError(f"{pulsars[0]} is for pulsar://: leave it away")
    accepted = _choice(given, AT_LEAST_ONCE, ["false", "true"]) == "true"
    if protocol is Protocol.KAFKA and accepted:
        raise OptionError(
            f"{AT_LEAST_ONCE} is for pulsar:// and iggy://: to Kafka each row is written once"
        )
    if protocol is Protocol.IGGY and not accepted:
        raise OptionError(
            f"Iggy has no transactions, so rows of a task or batch that is done again may be there "
            f"twice: set {AT_LEAST_ONCE} to true if that is no harm"
        )
    return accepted


def _choice(
    given: Mapping[str, str], name: str, words: Collection[str], default: str | None = None
) -> str:
    """Return one of these words, where none is given the default or else the first."""
    word = given.get(name.lower(), default or next(iter(words))).strip().lower()
    if word not in words:
        raise OptionError(f"{name} must be one of {', '.join(words)}, not {word!r}")
    return word


def _count(given: Mapping[str, str], name: str, least: int = 1) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdigit() or not least <= int(text) <= _MOST:
        raise OptionError(f"{name} must be a whole number from {least} to {_MOST}, not {text!r}")
    return int(text)
