"""Rows to Pulsar's servers without transactions: each row is written at least once.

The producer of a task is named for query and task, and numbers its messages by the batch and the
row, so that a server that knows producers by those takes what is done again once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.clients.kafka.transactions import WRITER_PREFIX
from penstock.clients.pulsar.client import PulsarClient
from penstock.clients.pulsar.connection import RefusedError
from penstock.clients.pulsar.producing import Producers, Sender
from penstock.pipeline.clusters.pulsar import full_name, partition_count
from penstock.pipeline.sink.epochs.at_least_once import AtLeastOnceEpochs, AtLeastOnceWriter
from penstock.pipeline.sink.epochs.attempt import refusals_in_words
from penstock.pipeline.sink.topics import Topic, no_topic

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.clients.asking import Ask
    from penstock.pipeline.sink.epochs.attempt import Attempt
    from penstock.pipeline.sink.options import SinkOptions
    from penstock.pipeline.sink.pulsar_packing import PulsarPacker

_EPOCH_BITS: Final = 32
"""A message's number is its batch's, and behind it that of the row: 4 billion of each partition."""

in_words = partial(refusals_in_words, "Pulsar's server", RefusedError, "the option token")


class PulsarRepeating(AtLeastOnceEpochs):
    """See `penstock.pipeline.sink.epochs.opening.Epochs`."""

    def __init__(self, options: SinkOptions, ask: Ask) -> None:
        self._options = options
        self._ask = ask
        self._client = PulsarClient(options.servers, options.address.access)

    def close(self) -> None:
        self._client.close()

    def check(self) -> None:
        check_topic(self._client, self._options, self._ask)

    def task(self, attempt: Attempt) -> RepeatingWriter:
        return RepeatingWriter(self._client, self._options, attempt, self._ask)


class RepeatingWriter(AtLeastOnceWriter):
    """See `penstock.pipeline.sink.epochs.opening.TaskWriter`."""

    def __init__(
        self, client: PulsarClient, options: SinkOptions, attempt: Attempt, ask: Ask
    ) -> None:
        name = f"{WRITER_PREFIX}{attempt.writer}/{attempt.partition}"
        topics = PulsarTopics(client, options.servers, ask)
        sender = Sender(name, attempt.epoch << _EPOCH_BITS)
        self._packer = packer_of(topics, options, attempt, sender)
        self._producers = Producers(client, sender, ask)

    def write(self, rows: pa.RecordBatch) -> None:
        with in_words():
            for outgoing in self._packer.entries(rows):
                self._producers.send(outgoing)

    def finish(self) -> None:
        with in_words():
            self._producers.flush()


class PulsarTopics:
    """Topics by their names, with or without `persistent://tenant/namespace/`. None is made."""

    def __init__(self, client: PulsarClient, servers: str, ask: Ask) -> None:
        self._client = client
        self._servers = servers
        self._ask = ask
        self._found: dict[str, tuple[Topic, bool]] = {}

    def find(self, name: str) -> Topic:
        """Return a topic. Raises SinkError where there is none, and OSError."""
        return self._looked_up(name)[0]

    def partition_name(self, name: str, partition: int) -> str:
        """Return the name under which a partition is written to."""
        _, has_partitions = self._looked_up(name)
        return f"{full_name(name)}-partition-{partition}" if has_partitions else full_name(name)

    def _looked_up(self, name: str) -> tuple[Topic, bool]:
        if name not in self._found:
            with in_words():
                full = full_name(name)
                partitions = self._ask(lambda: self._client.partitions(full))
                count = partitions or self._ask(lambda: partition_count(self._client, full))
                largest = self._ask(self._client.largest_message)
            if not count:
                raise no_topic(name, self._servers)
            topic = Topic(name, count, largest, "the broker's maxMessageSize")
            self._found[name] = topic, partitions > 0
        return self._found[name]


def check_topic(client: PulsarClient, options: SinkOptions, ask: Ask) -> None:
    """Raise SinkError where the server, or the topic that the options name, can't be written to."""
    with in_words():
        ask(client.largest_message)
    if options.topic is not None:
        PulsarTopics(client, options.servers, ask).find(options.topic)


def packer_of(
    topics: PulsarTopics, options: SinkOptions, attempt: Attempt, sender: Sender
) -> PulsarPacker:
    """Return what makes a task's batches."""
    # The driver plans without numpy and the compiled functions.
    from penstock.pipeline.sink.placing import Placing  # noqa: PLC0415
    from penstock.pipeline.sink.pulsar_packing import PulsarPacker  # noqa: PLC0415

    placing = Placing(topics, options.topic, options.partitioner, attempt.partition)
    return PulsarPacker(placing, options.codec, options.batch_bytes, topics.partition_name, sender)
