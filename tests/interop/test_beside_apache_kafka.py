"""Goal: Penstock answers as Apache Kafka does. Method: the same random requests to a real one, of
which all but the first versions have a part: what is written, read, committed, aborted and given
up, by producers, consumers and groups.

Apache Kafka comes from Maven Central. A run is told by its number, which makes it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from apache_kafka import ApacheKafka
from broker_process import BrokerProcess
from kafka_twins import Twin
from penstock.broker.groups.settings import GroupSettings
from side_by_side import ask_alike
from twin_steps import WEIGHTS

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

RUNS, STEPS = 30, 100


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    # Else what a generation's members have time for runs out at one of them before the other.
    delay = {"group.initial.rebalance.delay.ms": GroupSettings().initial_rebalance_delay_ms}
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), **delay) as broker:
        yield broker


@pytest.mark.parametrize("number", range(RUNS))
def test_both_answer_alike(
    original: ApacheKafka, shared_server: BrokerProcess, number: int
) -> None:
    twins = [Twin(each, f"twins-{number}") for each in (original.kafka, shared_server.kafka)]
    began_ms = time.time_ns() // 1_000_000
    for twin in twins:
        twin.began_ms = began_ms
        twin.begin()
    ask_alike(twins, WEIGHTS, number, STEPS)
    for twin in twins:
        twin.close()
