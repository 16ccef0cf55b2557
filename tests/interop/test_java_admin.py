"""Goal: Kafka's own Java Admin client of today gets an answer to everything that it can ask.

What is served is answered as a Kafka of one node does; what is not yet there is refused at once,
by name. `JavaAdmin.java` asks; a producer and a consumer with all their defaults, metrics that they
would push included, are among its questions.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from versus.peers import maven
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ARTIFACTS = ["org.apache.kafka:kafka-clients:4.3.0", "org.slf4j:slf4j-simple:1.7.36"]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
QUESTIONS = Path(__file__).parents[1] / "support" / "JavaAdmin.java"
RUN_SECONDS = 300

ANSWERS = {
    "createTopics": "3 2000000",
    "listTopics": "[events]",
    "describeTopics": "3 []",
    "describeTopics by id": "events",
    "describeTopics of none": "UnknownTopicOrPartitionException",
    "createPartitions": "done",
    "createTopics again": "TopicExistsException",
    "createTopics, checked only": "done",
    "a producer": "",
    "clientInstanceId": "one",
    "a consumer": "11",
    "listOffsets": "10",
    "listOffsets, the largest timestamp": "9",
    "listOffsets, what is local": "0",
    "listOffsets, what is in tiers": "-1",
    "deleteRecords": "4",
    "listOffsets, the earliest": "4",
    "describeProducers": "1",
    "listPartitionReassignments": "{}",
    "electLeaders": "ElectionNotNeededException",
    "electLeaders of all": "{}",
    "describeLogDirs": "4 true",
    "describeReplicaLogDirs": "0",
    "listGroups": "readers",
    "describeConsumerGroups": "Empty",
    "describeClassicGroups": "Empty",
    "describeConsumerGroups of none": "GroupIdNotFoundException",
    "listConsumerGroupOffsets": "10",
    "alterConsumerGroupOffsets": "done",
    "deleteConsumerGroupOffsets": "done",
    "deleteConsumerGroups": "done",
    "describeConfigs": "2000000",
    "incrementalAlterConfigs": "done",
    "describeConfigs after it": "3000000",
    "incrementalAlterConfigs of what is no setting": "InvalidConfigurationException",
    "describeConfigs of a broker": "true",
    "describeConfigs of a group": "true",
    "listConfigResources": "true",
    "describeConfigs of metrics": "300000",
    "alterClientQuotas": "done",
    "describeClientQuotas": "{producer_byte_rate=1048576.0}",
    "alterClientQuotas of what is not in effect": "InvalidRequestException",
    "describeCluster": "1 true",
    "describeFeatures": "[metadata.version, transaction.version]",
    "updateFeatures": "done",
    "updateFeatures to what is not here": "InvalidUpdateVersionException",
    "describeMetadataQuorum": "1 true",
    "listTransactions": "[]",
    "describeTransactions": "TransactionalIdNotFoundException",
    "fenceProducers": "done",
    "deleteTopics": "done",
}
NOT_SERVED = {
    "alterPartitionReassignments",
    "describeShareGroups",
    "describeStreamsGroups",
    "describeAcls",
    "describeUserScramCredentials",
    "describeDelegationToken",
    "unregisterBroker",
}


def test_every_question_is_answered(server: BrokerProcess) -> None:
    try:
        libraries = maven.class_path(maven.fetch(LIBRARIES, "kafka-clients", ARTIFACTS))
    except NotAvailableError as reason:
        pytest.skip(f"Kafka's Java client is not at hand: {reason}")
    ended = subprocess.run(
        ["java", "-cp", libraries, str(QUESTIONS), server.kafka],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = (line.partition(" = ") for line in ended.stdout.splitlines())
    # An exception counts by its kind: its words are for people.
    answers = {name: answer.split(":")[0] for name, _, answer in lines}
    assert answers == ANSWERS | dict.fromkeys(NOT_SERVED, "UnsupportedVersionException")
