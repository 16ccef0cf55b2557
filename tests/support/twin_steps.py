"""Steps of producers, consumers and groups, each made of random choices and asked of both twins.

What a step returns has nothing that a broker may choose: no ids, no times of its own, no order of
partitions.
"""

from __future__ import annotations

import random
import time
from typing import Any, NamedTuple

from kafka_transactions import batch
from kafka_twins import GROUPS, PARTITIONS, TRANSACTIONAL_IDS, Member, Twin, Writer, nobody
from penstock.clients.kafka.record_batch import decode_batches
from penstock.kafka.wire import ErrorCode, api
from penstock.log.header import ATTRIBUTE_TRANSACTIONAL, walk
from side_by_side import Outcome, Step, Weights

REBALANCE_MS = 1_000
SETTINGS = {
    "max.message.bytes": ("150", "100000"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "retention.ms": ("864000000",),
}


def _place(chance: random.Random) -> tuple[str, int]:
    """As a rule a partition that is there."""
    topic = chance.choice([*PARTITIONS])
    return topic, chance.choice([0, 0, 0, PARTITIONS[topic] - 1, 3])


def produce(chance: random.Random) -> Step[Twin]:
    topic, partition = _place(chance)
    writer = chance.choice(["", "", "idempotent", *TRANSACTIONAL_IDS, *TRANSACTIONAL_IDS])
    count, size = chance.randint(1, 5), chance.choice([0, 10, 60])
    again, behind_ms = chance.random() < 0.1, chance.choice([0, 0, 1_000, 86_400_000])
    version = chance.randint(3, 12)

    def step(twin: Twin) -> Outcome:
        known = twin.writers.get(writer, nobody() if writer else Writer())
        sequence = known.sequences[topic, partition] if known.id >= 0 else -1
        attributes = ATTRIBUTE_TRANSACTIONAL if writer in TRANSACTIONAL_IDS else 0
        # Apache Kafka remembers what it refused of a transaction, and takes nothing behind it.
        is_again = again and not attributes and sequence >= count
        sent = sequence - count if is_again else sequence
        data = batch(
            known.id,
            known.epoch,
            sent,
            bytes(size),
            count,
            attributes,
            timestamp_ms=twin.began_ms - behind_ms,
        )
        request = api("Produce").request
        part = request.PartitionProduceData(index=partition, records=data)
        answer = twin.ask(
            "Produce",
            version,
            transactional_id=twin.name(writer) if attributes else None,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[request.TopicProduceData(name=twin.name(topic), partition_data=[part])],
        )
        (result,) = answer.responses[0].partition_responses
        if result.error_code == 0 and sent == sequence >= 0:
            known.sequences[topic, partition] = sequence + count
        return result.error_code, result.base_offset

    return step


def fetch(chance: random.Random) -> Step[Twin]:
    (topic, partition), offset = _place(chance), chance.choice([0, 0, 1, 2, 3, 5, 10, 20])
    isolation, version = chance.choice([0, 1]), chance.randint(4, 12)
    max_bytes, partition_max_bytes = chance.choice([1, 1 << 20]), chance.choice([1, 100, 1 << 20])

    def step(twin: Twin) -> Outcome:
        request = api("Fetch").request
        part = request.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes
        )
        answer = twin.ask(
            "Fetch",
            version,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[request.FetchTopic(topic=twin.name(topic), partitions=[part])],
        )
        (result,) = answer.responses[0].partitions
        ends = result.high_watermark, result.last_stable_offset
        read = _read(result.records)
        # Apache Kafka names some more, of what lies behind the records that it returns.
        firsts = [each.first_offset for each in result.aborted_transactions or ()]
        return result.error_code, ends, sum(each < read.end for each in firsts), read

    return step


class Read(NamedTuple):
    """Batches and records of what was fetched, without the times of the broker."""

    batches: list[tuple[int, ...]]
    records: list[tuple[int, bytes | None, bytes | None]]
    end: int


def _read(records: Any) -> Read:
    whole = bytes(records or b"")
    headers = [header for _, header in walk(whole)]
    return Read(
        [(each.base_offset, each.record_count, each.attributes & 0x30) for each in headers],
        [(each.offset, each.key, each.value) for each in decode_batches(whole)],
        headers[-1].next_offset if headers else 0,
    )


def list_offsets(chance: random.Random) -> Step[Twin]:
    topic, partition = _place(chance)
    isolation, version = chance.choice([0, 1]), chance.randint(1, 11)
    time_asked = chance.choice([-1, -1, -2, 0, 1_000, 86_400_001])

    def step(twin: Twin) -> Outcome:
        request = api("ListOffsets").request
        timestamp = time_asked if time_asked <= 0 else twin.began_ms - time_asked
        part = request.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        asked = request.ListOffsetsTopic(name=twin.name(topic), partitions=[part])
        answer = twin.ask(
            "ListOffsets", version, replica_id=-1, isolation_level=isolation, topics=[asked]
        )
        (result,) = answer.topics[0].partitions
        return result.error_code, result.offset

    return step


def delete_records(chance: random.Random) -> Step[Twin]:
    (topic, partition), offset = _place(chance), chance.choice([0, 1, 2, 5, -1])

    def step(twin: Twin) -> Outcome:
        request = api("DeleteRecords").request
        part = request.DeleteRecordsPartition(partition_index=partition, offset=offset)
        asked = request.DeleteRecordsTopic(name=twin.name(topic), partitions=[part])
        answer = twin.ask("DeleteRecords", topics=[asked], timeout_ms=5_000)
        (result,) = answer.topics[0].partitions
        return result.error_code, result.low_watermark

    return step


def alter_configs(chance: random.Random) -> Step[Twin]:
    topic, key = chance.choice([*PARTITIONS]), chance.choice([*SETTINGS])
    value, operation = chance.choice(SETTINGS[key]), chance.choice([0, 0, 1])

    def step(twin: Twin) -> Outcome:
        request = api("IncrementalAlterConfigs").request
        config = request.AlterableConfig(name=key, value=value, config_operation=operation)
        resource = request.AlterConfigsResource(
            resource_type=2, resource_name=twin.name(topic), configs=[config]
        )
        answer = twin.ask("IncrementalAlterConfigs", resources=[resource])
        time.sleep(0.2)  # Until it is in effect in Apache Kafka.
        return [each.error_code for each in answer.responses]

    return step


def init_producer(chance: random.Random) -> Step[Twin]:
    writer, version = chance.choice(["idempotent", *TRANSACTIONAL_IDS]), chance.randint(0, 5)

    def step(twin: Twin) -> Outcome:
        name = twin.name(writer) if writer in TRANSACTIONAL_IDS else None
        answer = twin.ask(
            "InitProducerId", version, transactional_id=name, transaction_timeout_ms=60_000
        )
        if name is not None:
            twin.await_end(writer)
        twin.writers[writer] = Writer(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    return step


def _identity(twin: Twin, writer: str) -> dict[str, object]:
    known = twin.writers.get(writer, nobody())
    return {
        "transactional_id": twin.name(writer),
        "producer_id": known.id,
        "producer_epoch": known.epoch,
    }


def add_partitions(chance: random.Random) -> Step[Twin]:
    writer, (topic, partition) = chance.choice(TRANSACTIONAL_IDS), _place(chance)
    version = chance.randint(0, 3)

    def step(twin: Twin) -> Outcome:
        request = api("AddPartitionsToTxn").request
        asked = request.AddPartitionsToTxnTopic(name=twin.name(topic), partitions=[partition])
        identity = _identity(twin, writer).items()
        named = {f"v3_and_below_{key}": value for key, value in identity}
        answer = twin.ask("AddPartitionsToTxn", version, **named, v3_and_below_topics=[asked])
        (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        return result.partition_error_code

    return step


def commit_in_transaction(chance: random.Random) -> Step[Twin]:
    writer, (topic, partition) = chance.choice(TRANSACTIONAL_IDS), _place(chance)
    group, offset, version = chance.choice(GROUPS), chance.randint(0, 9), chance.randint(0, 5)
    is_added = chance.random() < 0.7

    def step(twin: Twin) -> Outcome:
        identity, name = _identity(twin, writer), twin.name(group)
        added = twin.ask("AddOffsetsToTxn", **identity, group_id=name) if is_added else None
        request = api("TxnOffsetCommit").request
        part = request.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="note"
        )
        asked = request.TxnOffsetCommitRequestTopic(name=twin.name(topic), partitions=[part])
        answer = twin.ask("TxnOffsetCommit", version, **identity, group_id=name, topics=[asked])
        (result,) = answer.topics[0].partitions
        return added and added.error_code, result.error_code

    return step


def end_transaction(chance: random.Random) -> Step[Twin]:
    writer, committed = chance.choice(TRANSACTIONAL_IDS), chance.random() < 0.6
    version = chance.randint(0, 5)

    def step(twin: Twin) -> Outcome:
        answer = twin.ask("EndTxn", version, **_identity(twin, writer), committed=committed)
        twin.await_end(writer)
        if answer.error_code == 0 and answer.producer_id >= 0:
            twin.writers[writer] = Writer(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    return step


def join_group(chance: random.Random) -> Step[Twin]:
    group, number, protocols = chance.choice(GROUPS), chance.randrange(3), ["range", "roundrobin"]
    version = chance.randint(1, 9)
    chance.shuffle(protocols)

    def step(twin: Twin) -> Outcome:
        member = twin.members[group, number]
        request = api("JoinGroup").request
        fields = {
            "group_id": twin.name(group),
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": [
                request.JoinGroupRequestProtocol(name=each, metadata=b"") for each in protocols
            ],
        }
        answer = twin.ask("JoinGroup", version, **fields, member_id=member.id)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = twin.ask("JoinGroup", version, **fields, member_id=answer.member_id)
        if answer.error_code != 0:
            twin.members[group, number] = Member()
            return answer.error_code
        joined = Member(answer.member_id, answer.generation_id, answer.protocol_name)
        twin.members[group, number] = joined
        leads = answer.leader == answer.member_id
        return answer.generation_id, answer.protocol_name, leads, len(answer.members)

    return step


def sync_group(chance: random.Random) -> Step[Twin]:
    group, number, version = chance.choice(GROUPS), chance.randrange(3), chance.randint(0, 5)

    def step(twin: Twin) -> Outcome:
        member = twin.members[group, number]
        request = api("SyncGroup").request
        given = request.SyncGroupRequestAssignment(member_id=member.id, assignment=b"all")
        answer = twin.ask(
            "SyncGroup",
            version,
            **_membership(twin, group, member),
            protocol_type="consumer",
            protocol_name=member.protocol,
            assignments=[given],
        )
        return answer.error_code, bytes(answer.assignment)

    return step


def heartbeat(chance: random.Random) -> Step[Twin]:
    group, number, version = chance.choice(GROUPS), chance.randrange(3), chance.randint(0, 4)

    def step(twin: Twin) -> Outcome:
        member = twin.members[group, number]
        return twin.ask("Heartbeat", version, **_membership(twin, group, member)).error_code

    return step


def leave_group(chance: random.Random) -> Step[Twin]:
    group, number, version = chance.choice(GROUPS), chance.randrange(3), chance.randint(0, 2)

    def step(twin: Twin) -> Outcome:
        member = twin.members.pop((group, number), Member())
        answer = twin.ask("LeaveGroup", version, group_id=twin.name(group), member_id=member.id)
        return answer.error_code

    return step


def _membership(twin: Twin, group: str, member: Member) -> dict[str, object]:
    return {
        "group_id": twin.name(group),
        "member_id": member.id,
        "generation_id": member.generation,
    }


def commit_offset(chance: random.Random) -> Step[Twin]:
    group, number, (topic, partition) = chance.choice(GROUPS), chance.randrange(3), _place(chance)
    offset, version = chance.randint(0, 9), chance.randint(2, 9)

    def step(twin: Twin) -> Outcome:
        member = twin.members[group, number]
        request = api("OffsetCommit").request
        part = request.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="note"
        )
        asked = request.OffsetCommitRequestTopic(name=twin.name(topic), partitions=[part])
        answer = twin.ask(
            "OffsetCommit",
            version,
            group_id=twin.name(group),
            member_id=member.id,
            generation_id_or_member_epoch=member.generation,
            topics=[asked],
        )
        (result,) = answer.topics[0].partitions
        return result.error_code

    return step


def fetch_offsets(chance: random.Random) -> Step[Twin]:
    group, version, stable = chance.choice(GROUPS), chance.randint(1, 7), chance.random() < 0.3

    def step(twin: Twin) -> Outcome:
        request = api("OffsetFetch").request
        topics = [
            request.OffsetFetchRequestTopic(
                name=twin.name(name), partition_indexes=[*range(partitions)]
            )
            for name, partitions in PARTITIONS.items()
        ]
        answer = twin.ask(
            "OffsetFetch",
            version,
            group_id=twin.name(group),
            topics=topics,
            require_stable=stable and version >= 7,
        )
        return answer.error_code, sorted(
            (topic.name, part.partition_index, part.error_code, part.committed_offset)
            for topic in answer.topics
            for part in topic.partitions
        )

    return step


WEIGHTS: Weights[Twin] = {
    produce: 14,
    fetch: 7,
    list_offsets: 5,
    delete_records: 2,
    alter_configs: 1,
    init_producer: 3,
    add_partitions: 5,
    commit_in_transaction: 3,
    end_transaction: 4,
    join_group: 4,
    sync_group: 4,
    heartbeat: 3,
    leave_group: 1,
    commit_offset: 4,
    fetch_offsets: 3,
}
