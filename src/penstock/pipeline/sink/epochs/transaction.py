"""What a task writes over Kafka's protocol: one transaction, which only the driver commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clients.closing import Closing
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.sink.epochs.attempt import CLIENT_ID
from penstock.pipeline.sink.topics import BrokerTopics

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from penstock.clients.asking import Ask
    from penstock.clients.kafka.coordinator import ProducerState
    from penstock.clients.kafka.transactions import TransactionalProducer
    from penstock.pipeline.sink.epochs.attempt import Attempt
    from penstock.pipeline.sink.options import SinkOptions


class TransactionWriter(Closing):
    """See `penstock.pipeline.sink.epochs.opening.TaskWriter`."""

    def __init__(
        self,
        options: SinkOptions,
        attempt: Attempt,
        ask: Ask,
        begin: Callable[[Attempt], TransactionalProducer],
    ) -> None:
        # The driver plans without numpy and the compiled functions.
        from penstock.pipeline.sink.packing import Packer  # noqa: PLC0415
        from penstock.pipeline.sink.placing import Placing  # noqa: PLC0415

        access = options.address.access
        self._client = KafkaClient(options.servers, client_id=CLIENT_ID, access=access)
        topics = BrokerTopics(self._client, options.servers, ask)
        placing = Placing(topics, options.topic, options.partitioner, attempt.partition)
        self._packer = Packer(placing, options.codec, options.batch_bytes)
        self._attempt = attempt
        self._begin = begin
        self._producer: TransactionalProducer | None = None

    def close(self) -> None:
        self._client.close()
        if self._producer is not None:
            self._producer.close()

    def write(self, rows: pa.RecordBatch) -> None:
        if self._producer is None:
            self._producer = self._begin(self._attempt)
        for request in self._packer.requests(rows, self._producer):
            self._producer.send(request)

    def finish(self) -> ProducerState | None:
        if self._producer is None:
            return None
        self._producer.flush()
        return self._producer.state

    def abort(self) -> None:
        if self._producer is not None:
            self._producer.abort()


def check_topic(options: SinkOptions, ask: Ask) -> None:
    """Raise SinkError where the topic that the options name can't be written to."""
    if options.topic is None:
        return
    access = options.address.access
    with KafkaClient(options.servers, client_id=CLIENT_ID, access=access) as client:
        BrokerTopics(client, options.servers, ask).find(options.topic)
