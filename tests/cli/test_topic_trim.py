"""Goal: what goes is shown before it goes, and goes for clients of every protocol."""

from __future__ import annotations

import json

import confluent_kafka
import pytest

from broker_process import BrokerProcess
from command_line import Penstock
from patience import PATIENCE_SECONDS

SMALL = "segment.bytes=1048576"
TIME_MS = 1_700_000_000_000


@pytest.fixture
def filled(penstock: Penstock, topic: str, shared_server: BrokerProcess) -> str:
    """A topic with five messages of 600 kB, a day apart, in partition 1."""
    penstock("topic", "alter", topic, "--set", SMALL)
    producer = confluent_kafka.Producer({"bootstrap.servers": shared_server.kafka})
    for number in range(5):
        day = TIME_MS + number * 86_400_000
        producer.produce(topic, bytes(600_000), partition=1, timestamp=day)
        assert producer.flush(PATIENCE_SECONDS) == 0
    return topic


def planned(penstock: Penstock, topic: str, *words: str) -> list[dict[str, int]]:
    shown = penstock("topic", "trim", topic, "--dry-run", "-f", "json", *words).stdout
    found = json.loads(shown)
    assert found["dry_run"]
    rows: list[dict[str, int]] = found["partitions"]
    return rows


def first_offset(server: BrokerProcess, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.kafka, "group.id": "g"})
    place = confluent_kafka.TopicPartition(topic, 1)
    first, _ = consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS)
    consumer.close()
    return int(first)


@pytest.mark.parametrize(
    ("words", "start", "segments"),
    [
        (["--before", "2"], 2, 2),
        (["--before", "-1"], 4, 4),
        (["--before", "end"], 5, 5),
        (["--before", "900"], 5, 5),
        (["--before", "@2023-11-16T00:00:00Z"], 2, 2),
        (["--before", "@1"], 0, 0),
        (["--before", "@2099-01-01"], 5, 5),
        (["--keep-bytes", "1MiB"], 3, 3),
        (["--keep-bytes", "0"], 5, 5),
        (["--keep-bytes", "1TiB"], 0, 0),
    ],
)
def test_a_dry_run_shows_what_would_go(
    penstock: Penstock,
    filled: str,
    shared_server: BrokerProcess,
    words: list[str],
    start: int,
    segments: int,
) -> None:
    empty, row, _ = planned(penstock, filled, *words)
    assert empty["messages"] == empty["segments"] == 0
    assert (row["first_offset"], row["first_after"], row["messages"]) == (0, start, start)
    assert row["segments"] == segments
    assert 600_000 * segments <= row["bytes"] < 600_200 * max(segments, 1)
    assert first_offset(shared_server, filled) == 0
    done = json.loads(penstock("topic", "trim", filled, "-y", "-f", "json", *words).stdout)
    assert done["partitions"][1] == row
    assert first_offset(shared_server, filled) == start
    assert planned(penstock, filled, *words)[1]["messages"] == 0


def test_only_the_partition_that_was_named_is_trimmed(
    penstock: Penstock, filled: str, shared_server: BrokerProcess
) -> None:
    shown = penstock("topic", "trim", filled, "--before", "end", "--partition", "0", "--yes")
    assert shown.stdout.endswith("gave up 0 messages of " + filled + "\n")
    assert first_offset(shared_server, filled) == 0


def test_nobody_is_trimmed_by_mistake(
    penstock: Penstock, filled: str, shared_server: BrokerProcess
) -> None:
    assert (
        "nothing was given up"
        in penstock("topic", "trim", filled, "--before", "2", stdin="n\n", code=1).stderr
    )
    for words in ([], ["--before", "1", "--keep-bytes", "1"]):
        assert "one of --before" in penstock("topic", "trim", filled, *words, code=2).stderr
    assert (
        "a size as 10GiB" in penstock("topic", "trim", filled, "--keep-bytes", "-1", code=2).stderr
    )
    assert "is needed is" in penstock("topic", "trim", filled, "--before", "x", code=2).stderr
    penstock("topic", "trim", "no-such-topic", "--before", "1", code=1)
    assert first_offset(shared_server, filled) == 0
    assert (
        "gave up 2 messages"
        in penstock("topic", "trim", filled, "--before", "2", stdin="y\n").stdout
    )


def test_a_compacted_topic_is_not_trimmed_and_says_so(penstock: Penstock, filled: str) -> None:
    penstock("topic", "alter", filled, "--set", "cleanup.policy=compact")
    said = penstock("topic", "trim", filled, "--before", "2", "--yes", code=1).stderr
    assert "a compacted one is not trimmed" in said
