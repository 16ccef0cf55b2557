"""Goal: our own client does what its methods say, and fails in a way that tells why.

Method: against a broker of its own, as users run it.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from broker_process import BrokerProcess
from patience import lasted
from penstock.clients.kafka.client import (
    EARLIEST,
    LATEST,
    GroupMember,
    KafkaClient,
    KafkaError,
)
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.log.header import walk


@pytest.fixture
def client(shared_server: BrokerProcess) -> KafkaClient:
    return KafkaClient(shared_server.kafka, timeout_s=20)


def batch(*values: bytes) -> bytearray:
    return encode_batch([Record(value, timestamp_ms=1000) for value in values])


def test_records_go_in_and_come_out(client: KafkaClient) -> None:
    with client:
        client.create_topic("client.records", 2, {"segment.bytes": "2000000"})
        assert client.produce("client.records", 1, batch(b"a", b"b")) == 0
        assert client.produce("client.records", 1, batch(b"c"), acks=1) == 2
        client.fetch("client.records", 1, 2, max_wait_ms=15_000)  # It is seen once it is safe.
        fetched = client.fetch("client.records", 1, 1)
        assert [header.base_offset for _, header in walk(fetched.batches)] == [0, 2]
        assert (fetched.high_watermark, fetched.log_start_offset) == (3, 0)
        assert len(client.fetch("client.records", 0, 0).batches) == 0
        ends = {("client.records", 1): LATEST, ("client.records", 0): EARLIEST}
        assert client.list_offsets(ends) == {("client.records", 1): 3, ("client.records", 0): 0}
        late = {("client.records", 1): 1001}
        assert client.list_offsets(late) == {("client.records", 1): None}
        assert client.topic_config("client.records")["segment.bytes"] == "2000000"


def test_nothing_is_waited_for_without_acknowledgement(client: KafkaClient) -> None:
    with client:
        client.create_topic("client.silent", 1)
        assert client.produce("client.silent", 0, batch(b"a"), acks=0) == -1
        assert client.fetch("client.silent", 0, 0, max_wait_ms=15_000).high_watermark == 1


def test_a_fetch_waits_for_what_another_client_writes(
    client: KafkaClient, shared_server: BrokerProcess
) -> None:
    with client, KafkaClient(shared_server.kafka) as other:
        client.create_topic("client.waits", 1)
        writer = threading.Timer(0.05, other.produce, ("client.waits", 0, batch(b"late")))
        writer.start()
        began = time.monotonic()
        fetched = client.fetch("client.waits", 0, 0, max_wait_ms=20_000)
        writer.join()
        assert b"late" in bytes(fetched.batches)
        assert not lasted(began, 20)


def test_groups_are_told_of_by_a_broker_that_is_not_penstock_too(
    client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group = "client.read", "client.readers"
    with client:
        client.create_topic(topic, 2)
        client.produce(topic, 1, batch(b"a", b"b", b"c"))
        client.commit_offsets(group, {(topic, 0): 0, (topic, 1): 1})
        of_penstock = client.readers(group)
        offered = {key: range_ for key, range_ in client.api_versions().items() if key != 30_000}
        monkeypatch.setattr(client, "api_versions", lambda: offered)
        assert client.readers(group) == of_penstock
        assert client.readers("client.nobody") == []
        assert of_penstock[0] in client.readers()
    assert of_penstock[0].backlog == 2


def test_a_group_whose_broker_divides_the_partitions_is_described(
    client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer, classic = api("ConsumerGroupDescribe"), api("DescribeGroups")
    types = newer.response
    owned = types.TopicPartitions(topic_name="orders", partitions=[0, 2])
    member = types.Member(
        member_id="m",
        client_id="c",
        client_host="/h",
        assignment=types.Assignment(topic_partitions=[owned]),
    )
    answers = {
        classic: classic.response(
            groups=[classic.response.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)]
        ),
        newer: types(
            groups=[types.DescribedGroup(group_id="g", group_state="Stable", members=[member])]
        ),
    }
    monkeypatch.setattr(client, "api_versions", lambda: {newer.key: (0, 1)})
    monkeypatch.setattr(ClientConnection, "send", lambda _self, asked, _request: answers[asked])
    described = client.describe_group("g")
    assert (described.group_id, described.state) == ("g", "Stable")
    assert described.members == [GroupMember("m", "c", "/h", {"orders": [0, 2]})]


def test_topics_and_cluster_are_described(
    client: KafkaClient, shared_server: BrokerProcess
) -> None:
    with client:
        client.create_topic("client.described", 3)
        (topic,) = client.topics(["client.described"])
        assert (topic.name, list(topic.partitions)) == ("client.described", [0, 1, 2])
        assert topic in client.topics()
        cluster = client.cluster()
        assert len(cluster.cluster_id) == 22
        port = int(shared_server.kafka.rpartition(":")[2])
        assert list(cluster.brokers) == [(0, "127.0.0.1", port)]
        directory = client.log_directory(["client.described"])
        assert directory.path == str(shared_server.data_folder)
        assert directory.sizes == {("client.described", index): 0 for index in range(3)}
        assert client.api_versions()[18] == (0, 4)
        client.delete_topic("client.described")
        assert "client.described" not in {each.name for each in client.topics()}


def test_sizes_are_those_of_all_folders_of_all_brokers(
    client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    types, metadata = api("DescribeLogDirs").response, api("Metadata")

    def folder(name: str, sizes: dict[int, int], error: int = 0) -> Any:
        partitions = [
            types.DescribeLogDirsPartition(partition_index=index, partition_size=size)
            for index, size in sizes.items()
        ]
        topic = types.DescribeLogDirsTopic(name="t", partitions=partitions)
        return types.DescribeLogDirsResult(error_code=error, log_dir=name, topics=[topic])

    brokers = [
        metadata.response.MetadataResponseBroker(node_id=node, host=f"b{node}", port=9092)
        for node in range(2)
    ]
    answers = [
        types(results=[folder("/a", {0: 5}), folder("/broken", {}, ErrorCode.KAFKA_STORAGE_ERROR)]),
        types(results=[folder("/b", {0: 4, 1: 7})]),
    ]

    def send(_self: Any, asked: Any, _request: Any) -> Any:
        return metadata.response(brokers=brokers) if asked is metadata else answers.pop(0)

    monkeypatch.setattr(ClientConnection, "send", send)
    assert client.log_directory() == ("/a", {("t", 0): 5, ("t", 1): 7})
    brokers.pop()
    for answer, code in (
        (types(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (types(error_code=31), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (types(results=[folder("/a", {}, 56)]), ErrorCode.KAFKA_STORAGE_ERROR),
    ):
        answers.append(answer)
        with pytest.raises(KafkaError) as failure:
            client.log_directory()
        assert failure.value.code is code


def test_errors_of_the_broker_carry_their_code(client: KafkaClient) -> None:
    with client:
        client.create_topic("client.errors", 1)
        for attempt, code in (
            (lambda: client.create_topic("client.errors", 1), ErrorCode.TOPIC_ALREADY_EXISTS),
            (lambda: client.create_topic("a/b", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (lambda: client.delete_topic("none"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (lambda: client.topics(["none"]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (lambda: client.fetch("client.errors", 0, 9), ErrorCode.OFFSET_OUT_OF_RANGE),
            (lambda: client.produce("client.errors", 0, b"x"), ErrorCode.CORRUPT_MESSAGE),
            (lambda: client.describe_group("none"), ErrorCode.GROUP_ID_NOT_FOUND),
            (lambda: client.delete_group("none"), ErrorCode.GROUP_ID_NOT_FOUND),
        ):
            with pytest.raises(KafkaError) as failure:
                attempt()
            assert failure.value.code is code
        assert client.committed_offsets("none") == {}


def test_a_broker_that_is_not_there_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionError, match=str(port)):
        KafkaClient(f"127.0.0.1:{port}").cluster()
    with pytest.raises(ConnectionError, match="host:port"):
        KafkaClient("somewhere").cluster()


def test_the_next_call_connects_anew(server: BrokerProcess) -> None:
    with KafkaClient(server.kafka, timeout_s=20) as client:
        before = client.cluster()
        server.restart()
        with pytest.raises(OSError, match=r"closed the connection|reset|Broken pipe"):
            client.cluster()
        assert client.cluster() == before


@pytest.mark.parametrize("answer", [b"", b"\xff\xff\xff\xff", b"\0\0\0\4\0\0\0\x63", b"HTTP/1.1"])
def test_an_answer_that_is_none_is_a_failed_connection(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def reply() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        server = threading.Thread(target=reply)
        server.start()
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match=r"."):
            KafkaClient(f"127.0.0.1:{port}", timeout_s=5).cluster()
        server.join()
