"""A transactional producer of Kafka that names versions itself, over a `Dialog`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_dialog import TOPIC
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import api
from penstock.log.header import ATTRIBUTE_TRANSACTIONAL, Magic, build_header, read_header

if TYPE_CHECKING:
    from kafka_dialog import Dialog

ID = "payments"
GROUP = "readers"


def batch(
    producer_id: int,
    epoch: int,
    sequence: int,
    value: bytes = b"v",
    count: int = 1,
    attributes: int = ATTRIBUTE_TRANSACTIONAL,
    timestamp_ms: int = 1,
) -> bytearray:
    """Return a batch of a transaction; with no attributes, of an idempotent producer."""
    plain = encode_batch([Record(value, timestamp_ms=timestamp_ms)] * count)
    header = read_header(plain)
    body = plain[61:]
    made = build_header(
        Magic.KAFKA,
        body,
        record_count=count,
        last_offset_delta=count - 1,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return made + body


class TransactionalProducer:
    """`part_2`: it speaks the versions of KIP-890's second part, else those before."""

    def __init__(self, dialog: Dialog, name: str = ID, *, part_2: bool = True) -> None:
        self.dialog = dialog
        self.name = name
        self.part_2 = part_2
        self.id = self.epoch = -1
        self._sequences: dict[int, int] = {}

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.id,
            "producer_epoch": self.epoch,
        }

    async def init(self, version: int | None = None, **fields: Any) -> int:
        asked = {"transactional_id": self.name, "transaction_timeout_ms": 60_000, **fields}
        answer = await self.dialog.ask("InitProducerId", version, **asked)
        if answer.error_code == 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        return int(answer.error_code)

    async def add(self, *partitions: int, topic: str = TOPIC, version: int = 3) -> list[int]:
        request = api("AddPartitionsToTxn").request
        asked = request.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
        answer = await self.dialog.ask(
            "AddPartitionsToTxn",
            version,
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[asked],
        )
        (found,) = answer.results_by_topic_v3_and_below
        return [each.partition_error_code for each in found.results_by_partition]

    async def add_offsets(self, group: str = GROUP, version: int = 3) -> int:
        answer = await self.dialog.ask("AddOffsetsToTxn", version, **self.identity, group_id=group)
        return int(answer.error_code)

    async def commit_offset(
        self, offset: int, partition: int = 0, *, version: int | None = None, **fields: Any
    ) -> int:
        request = api("TxnOffsetCommit").request
        part = request.TxnOffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_metadata=fields.pop("metadata", "note"),
        )
        topic = request.TxnOffsetCommitRequestTopic(
            name=fields.pop("topic", TOPIC), partitions=[part]
        )
        version = version if version is not None else 5 if self.part_2 else 3
        asked = {**self.identity, "group_id": GROUP, "topics": [topic], **fields}
        answer = await self.dialog.ask("TxnOffsetCommit", version, **asked)
        return int(answer.topics[0].partitions[0].error_code)

    async def produce(
        self, value: bytes = b"v", partition: int = 0, *, version: int | None = None, **fields: Any
    ) -> int:
        """Return the error code; a batch that is refused does not count."""
        sequence = self._sequences.get(partition, 0)
        records = fields.pop("batch", None) or batch(self.id, self.epoch, sequence, value)
        asked = self.dialog.produce_fields((partition, records))
        asked["transactional_id"] = fields.pop("transactional_id", self.name)
        version = version if version is not None else 12 if self.part_2 else 10
        answer = await self.dialog.ask("Produce", version, **asked)
        code = int(answer.responses[0].partition_responses[0].error_code)
        if code == 0:
            self._sequences[partition] = sequence + 1
        return code

    async def end(self, *, committed: bool = True, version: int | None = None) -> int:
        version = version if version is not None else 5 if self.part_2 else 3
        answer = await self.dialog.ask("EndTxn", version, **self.identity, committed=committed)
        if answer.error_code == 0 and version >= 5:
            if (answer.producer_id, answer.producer_epoch) != (self.id, self.epoch):
                self._sequences = {}
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)


async def fetched_offset(dialog: Dialog, *, stable: bool = False, partition: int = 0) -> Any:
    """What OffsetFetch answers for the group: the offset, or the error code of a refusal."""
    request = api("OffsetFetch").request
    topic = request.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[partition])
    group = request.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
    answer = await dialog.ask("OffsetFetch", 8, groups=[group], require_stable=stable)
    found = answer.groups[0].topics[0].partitions[0]
    return f"error {found.error_code}" if found.error_code else found.committed_offset
