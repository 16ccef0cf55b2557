"""Goal: a person sees what compaction would leave, and has it done."""

from __future__ import annotations

import json
import time

from confluent_kafka import Producer

from broker_process import BrokerProcess
from command_line import Penstock
from patience import PATIENCE_SECONDS


def consumed(penstock: Penstock, topic: str) -> list[dict[str, str]]:
    lines = penstock("consume", topic, "-f", "json").stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_what_would_go_goes(penstock: Penstock, shared_server: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": shared_server.kafka})
    for number in range(20):
        producer.produce(topic, f"value {number}", key=f"key {number % 4}", partition=0)
    producer.produce(topic, "no key", partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0
    shown = penstock("topic", "compact", topic, "--dry-run")
    assert "nothing was changed" in shown.stdout
    found = json.loads(penstock("topic", "compact", topic, "--dry-run", "-f", "json").stdout)
    row, *others = found["partitions"]
    assert [each["messages"] for each in others] == [0, 0]
    assert row == {
        "partition": 0,
        "messages": 21,
        "keys": 4,
        "superseded": 16,
        "bytes": sum(len(f"value {number}key {number % 4}") for number in range(16)),
    }
    assert len(consumed(penstock, topic)) == 21
    assert "going to be compacted" in penstock("topic", "compact", topic).stdout
    deadline = time.monotonic() + 120
    while len(left := consumed(penstock, topic)) == 21 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [each["value"] for each in left] == [*(f"value {n}" for n in range(16, 20)), "no key"]
