"""Goal: what admin clients show of configurations and permissions is there, and a client that is
set up for SASL says why it can't. Method: a broker as users run it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import IllegalSaslStateError, KafkaConnectionError
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, ResourceType
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient

from broker_process import BrokerProcess

STATIC_BROKER, DEFAULT = 4, 5
OF_GROUPS = {
    AclOperation.READ,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
}
OF_TOPICS = OF_GROUPS | {AclOperation.WRITE, AclOperation.CREATE, AclOperation.ALTER}


def test_confluent_reads_the_broker_s_keys(shared_server: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    resource = ConfigResource(ResourceType.BROKER, "0")
    keys = admin.describe_configs([resource])[resource].result()
    assert keys["advertised.listeners"].value == f"PLAINTEXT://{shared_server.kafka}"
    assert keys["advertised.listeners"].source == STATIC_BROKER
    assert (keys["log.retention.ms"].value, keys["log.retention.ms"].source) == ("-1", DEFAULT)
    assert all(key.is_read_only for key in keys.values())


def test_confluent_shows_what_may_be_done(shared_server: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    admin.create_topics([NewTopic("operations", 1)])["operations"].result()
    asked = {"include_authorized_operations": True}
    cluster = admin.describe_cluster(**asked).result()
    assert AclOperation.IDEMPOTENT_WRITE in cluster.authorized_operations
    topic = admin.describe_topics(TopicCollection(["operations"]), **asked)["operations"].result()
    assert set(topic.authorized_operations) == OF_TOPICS
    group = admin.describe_consumer_groups(["nobody"], **asked)["nobody"].result()
    assert set(group.authorized_operations) == OF_GROUPS


def test_kafka_python_reads_the_keys_of_a_group(shared_server: BrokerProcess) -> None:
    admin = KafkaAdminClient(bootstrap_servers=shared_server.kafka)
    try:
        resource = PythonResource(ConfigResourceType.GROUP, "readers")
        described = admin.describe_configs([resource], config_filter="all")
    finally:
        admin.close()
    keys = described["group"]["readers"]
    assert keys["consumer.session.timeout.ms"]["value"] == "45000"


def test_confluent_says_why_it_can_t_log_in(shared_server: BrokerProcess) -> None:
    errors: list[str] = []
    admin = AdminClient(
        {
            "bootstrap.servers": shared_server.kafka,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "user",
            "sasl.password": "secret",
            "reconnect.backoff.ms": 5_000,
            "error_cb": lambda error: errors.append(error.str()),
            "log_level": 0,
        }
    )
    for _ in range(100):
        admin.poll(0.1)
        if errors:
            break
    assert "Request not valid in current SASL state" in errors[0]


async def test_aiokafka_says_why_it_can_t_log_in(shared_server: BrokerProcess) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=shared_server.kafka,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="user",
        sasl_plain_password="secret",
    )
    with pytest.raises((IllegalSaslStateError, KafkaConnectionError)):
        await producer.start()
    await producer.stop()


@pytest.fixture
def python_admin(shared_server: BrokerProcess) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=shared_server.kafka)
    yield admin
    admin.close()


def test_kafka_python_looks_around(python_admin: KafkaAdminClient) -> None:
    python_admin.create_topics({"looked-at": {"num_partitions": 3}})
    described = python_admin.describe_topic_partitions(["looked-at"])
    assert len(described["topics"][0]["partitions"]) == 3
    features = python_admin.describe_features()
    assert "metadata.version" in str(features)
    assert python_admin.list_partition_reassignments() in ({}, [])
    assert "looked-at" in str(python_admin.list_config_resources())
    assert "leader_id" in str(python_admin.describe_metadata_quorum())
