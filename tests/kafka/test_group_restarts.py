"""Goal: members of a stable group go on after a restart or a crash of the broker: what they read
before is committed in their old generation, nobody rebalances, and nothing is read twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer

from broker_process import BrokerProcess
from kafka_dialog import Dialog, kafka_broker
from patience import PATIENCE_SECONDS
from penstock import limits
from penstock.broker.groups.settings import GroupSettings
from penstock.kafka.wire import ErrorCode, api

AT_ONCE = GroupSettings(initial_rebalance_delay_ms=0)
DEADLINE_SECONDS = PATIENCE_SECONDS
ENDS: list[Callable[[BrokerProcess], None]] = [
    BrokerProcess.restart,
    lambda server: (server.kill9(), server.start()),  # type: ignore[func-returns-value]
]


def produce(server: BrokerProcess, topic: str, values: range) -> None:
    producer = Producer({"bootstrap.servers": server.kafka})
    for value in values:
        producer.produce(topic, str(value).encode())
    assert producer.flush(DEADLINE_SECONDS) == 0


@pytest.mark.parametrize("end", ENDS, ids=["restart", "crash"])
def test_librdkafka_commits_in_its_old_generation(
    server: BrokerProcess, end: Callable[[BrokerProcess], None]
) -> None:
    produce(server, "events", range(10))
    rebalances: list[str] = []
    reader = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": "idle",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 200,
        }
    )
    reader.subscribe(
        ["events"],
        on_assign=lambda *_: rebalances.append("assigned"),
        on_revoke=lambda *_: rebalances.append("revoked"),
        on_lost=lambda *_: rebalances.append("lost"),
    )
    seen = take(lambda: reader.poll(0.2), 10)
    end(server)
    reader.commit(seen[-1], asynchronous=False)
    produce(server, "events", range(10, 15))
    seen += take(lambda: reader.poll(0.2), 5)
    assert [message.value() for message in seen] == [str(n).encode() for n in range(15)]
    assert rebalances == ["assigned"]
    reader.close()


def test_kafka_python_commits_in_its_old_generation(server: BrokerProcess) -> None:
    produce(server, "events", range(10))
    reader = KafkaConsumer(
        "events",
        bootstrap_servers=server.kafka,
        group_id="idle",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        reconnect_backoff_max_ms=200,
    )
    polled: list[Any] = []

    def one() -> Any:
        if not polled:
            polled.extend(each for part in reader.poll(200).values() for each in part)
        return polled.pop(0) if polled else None

    seen = take(one, 10)
    before = reader._coordinator.generation_if_stable()
    server.kill9()
    server.start()
    reader.commit()
    assert reader._coordinator.generation_if_stable() == before
    produce(server, "events", range(10, 15))
    seen += take(one, 5)
    assert [message.value for message in seen] == [str(n).encode() for n in range(15)]
    assert reader._coordinator.generation_if_stable() == before
    reader.close()


def take(poll: Callable[[], Any], count: int) -> list[Any]:
    taken: list[Any] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(taken) < count:
        assert time.monotonic() < deadline, f"{len(taken)} of {count} messages"
        message = poll()
        if message is not None and not (
            callable(getattr(message, "error", None)) and message.error()
        ):
            taken.append(message)
    return taken


async def test_the_codes_of_an_old_generation_are_those_of_before(tmp_path: Path) -> None:
    protocol = api("JoinGroup").request.JoinGroupRequestProtocol(name="range", metadata=b"topics")
    given = api("SyncGroup").request.SyncGroupRequestAssignment
    member: dict[str, Any] = {"group_id": "g", "member_id": ""}
    async with kafka_broker(tmp_path, groups=AT_ONCE) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        joining = {
            "session_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [protocol],
        }
        for _ in range(2):
            joined = await dialog.ask("JoinGroup", **member, **joining, rebalance_timeout_ms=10_000)
            member["member_id"] = joined.member_id
        assignments = [given(member_id=joined.member_id, assignment=b"all")]
        member["generation_id"] = joined.generation_id
        syncing = {**member, "protocol_type": "consumer", "protocol_name": "range"}
        await dialog.ask("SyncGroup", **syncing, assignments=assignments)
        described = (await dialog.ask("DescribeGroups", groups=["g"])).groups
    async with kafka_broker(tmp_path, groups=AT_ONCE) as broker:
        dialog = Dialog(broker)
        assert (await dialog.ask("DescribeGroups", groups=["g"])).groups == described
        assert (await dialog.ask("Heartbeat", **member)).error_code == 0
        assert (await dialog.ask("SyncGroup", **syncing)).assignment == b"all"
        for generation, code in ((1, 0), (2, ErrorCode.ILLEGAL_GENERATION)):
            assert await commit(dialog, member["member_id"], generation) == code
        assert await commit(dialog, "another", 1) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_commit_beyond_what_is_kept_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        assert await commit(dialog, "", -1) == 0
        monkeypatch.setattr(limits, "COMMITTED_OFFSET_BYTES", 1)
        assert await commit(dialog, "", -1) == 0, "it was there"
        code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        assert await commit(dialog, "", -1, group_id="made up") == code


async def commit(dialog: Dialog, member_id: str, generation: int, group_id: str = "g") -> int:
    request = api("OffsetCommit").request
    part = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = request.OffsetCommitRequestTopic(name="orders", partitions=[part])
    answer = await dialog.ask(
        "OffsetCommit",
        9,
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[topic],
    )
    code: int = answer.topics[0].partitions[0].error_code
    return code
