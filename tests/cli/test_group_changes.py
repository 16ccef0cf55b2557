"""Goal: a consumer group is moved and deleted, and never under the feet of its members."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from broker_process import BrokerProcess
from command_line import Penstock
from patience import PATIENCE_SECONDS


@contextmanager
def consumer(server: BrokerProcess, group: str) -> Iterator[Consumer]:
    made = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def group(penstock: Penstock, topic: str, shared_server: BrokerProcess) -> str:
    """A group that has read 3 of 10 messages of partition 0, and nothing else."""
    penstock("produce", topic, "-p", "0", stdin="\n".join("0123456789"))
    penstock("produce", topic, "-p", "1", stdin="\n".join("ab"))
    name = f"group-of-{topic}"
    with consumer(shared_server, name) as reader:
        reader.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    return name


def seek(penstock: Penstock, group: str, *words: str) -> list[dict[str, Any]]:
    told = json.loads(penstock("group", "seek", group, *words, "-f", "json").stdout)
    assert told["group"] == group
    rows: list[dict[str, Any]] = told["partitions"]
    return rows


def committed(penstock: Penstock, group: str) -> dict[int, int]:
    told = json.loads(penstock("group", "describe", group, "-f", "json").stdout)
    return {row["partition"]: row["committed"] for row in told["partitions"]}


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (["--to", "start"], 0),
        (["--to", "end"], 10),
        (["--to", "7"], 7),
        (["--to", "-4"], 6),
        (["--to", "99"], 10),
        (["--to", "@0"], 0),
        (["--to", "@2999-01-01"], 10),
        (["--by", "2"], 5),
        (["--by", "-2"], 1),
        (["--by", "-9"], 0),
    ],
)
def test_a_group_goes_on_from_a_place(
    penstock: Penstock, topic: str, group: str, words: list[str], after: int
) -> None:
    row = {"topic": topic, "partition": 0, "before": 3, "after": after, "lag": 10 - after}
    assert seek(penstock, group, *words, "--dry-run") == [row]
    assert committed(penstock, group) == {0: 3}
    assert seek(penstock, group, *words) == [row]
    assert committed(penstock, group) == {0: after}


def test_a_topic_is_taken_whole_or_by_partition(penstock: Penstock, topic: str, group: str) -> None:
    assert [row["after"] for row in seek(penstock, group, "-t", topic, "-p", "1", "--to", "1")] == [
        1
    ]
    assert committed(penstock, group) == {0: 3, 1: 1}
    rows = seek(penstock, group, "-t", topic, "--to", "end")
    assert [(row["before"], row["after"]) for row in rows] == [(3, 10), (1, 2), (None, 0)]
    assert committed(penstock, group) == {0: 10, 1: 2, 2: 0}
    table = penstock("group", "seek", group, "-t", topic, "--to", "start", "--dry-run").stdout
    assert table.splitlines()[0].split() == ["TOPIC", "PARTITION", "BEFORE", "AFTER", "LAG"]
    assert table.splitlines()[-1] == "nothing was changed: this was a dry run"


def test_a_client_goes_on_where_the_group_was_moved(
    penstock: Penstock, topic: str, group: str, shared_server: BrokerProcess
) -> None:
    seek(penstock, group, "--to", "8")
    with consumer(shared_server, group) as reader:
        reader.assign([TopicPartition(topic, 0)])
        read = reader.consume(2, timeout=PATIENCE_SECONDS)
    assert [message.value() for message in read] == [b"8", b"9"]


def test_a_group_with_members_is_neither_moved_nor_deleted(
    penstock: Penstock, topic: str, group: str, shared_server: BrokerProcess
) -> None:
    with consumer(shared_server, group) as reader:
        reader.subscribe([topic])
        assert reader.consume(1, timeout=PATIENCE_SECONDS)
        refused = penstock("group", "seek", group, "--to", "start", code=1).stderr
        assert "has 1 member, who would not notice: stop them first" in refused
        refused = penstock("group", "delete", group, "--yes", code=1).stderr
        assert "the group has members: stop them first" in refused
        assert committed(penstock, group)[0] == 3
    told = penstock("group", "delete", group, "--yes", "-f", "json").stdout
    assert json.loads(told) == {"group": group, "deleted": True}
    assert group not in penstock("group", "list").stdout
    assert "there is no such group" in penstock("group", "delete", group, "-y", code=1).stderr


def test_a_group_that_is_yet_to_come_may_have_a_place(penstock: Penstock, topic: str) -> None:
    name = f"new-{topic}"
    assert "--topic says" in penstock("group", "seek", name, "--to", "end", code=1).stderr
    seek(penstock, name, "--to", "end", "--topic", topic)
    assert committed(penstock, name) == {0: 0, 1: 0, 2: 0}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "one of --to PLACE and --by N"),
        (["--to", "end", "--by", "1"], 2, "one of --to PLACE and --by N"),
        (["--to", "soon"], 2, "start, end, N, -N or @TIME"),
        (["--to", "@soon"], 2, "@2026-01-31"),
        (["--to", "end", "-p", "1"], 2, "--topic NAME"),
        (["--to", "end", "-t", "no-such"], 1, "there is no such topic"),
    ],
)
def test_what_is_refused_says_what_is_needed(
    penstock: Penstock, group: str, words: list[str], code: int, said: str
) -> None:
    assert said in penstock("group", "seek", group, *words, code=code).stderr
    assert committed(penstock, group) == {0: 3}
