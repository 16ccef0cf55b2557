"""The active consumer is the one that Pulsar's brokers would choose."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.subscriptions.selectors import failover
from penstock.broker.subscriptions.selectors.failover import choose_active
from penstock.broker.topics.names import TopicName
from penstock.records.pulsar.sticky_key import murmur3_32
from receivers import consumer


@pytest.mark.parametrize(
    ("data", "hashed"),
    [
        (b"", 0),
        (b"a", 1009084850),
        (b"key1", 2610364709),
        (b"key2", 1936800180),
        (b"my-partition-key", 1303690520),
        (b"NONE_KEY", 504741539 | 1 << 31),
    ],
)
def test_murmur3(data: bytes, hashed: int) -> None:
    assert murmur3_32(data) == hashed


def partition(index: int, *, partitioned: bool, topic: str = "t") -> Any:
    name = TopicName("public", "default", topic)
    return SimpleNamespace(index=index, topic=SimpleNamespace(partitioned=partitioned, name=name))


def test_nobody_of_nobody() -> None:
    assert choose_active(partition(0, partitioned=True), []) is None


def test_partitions_spread_by_number_over_names() -> None:
    members = [consumer(name) for name in "cab"]
    chosen = [choose_active(partition(n, partitioned=True), members) for n in range(4)]
    assert [member.name for member in chosen if member] == ["a", "b", "c", "a"]


def test_the_best_priority_comes_before_names() -> None:
    members = [consumer("a", priority=2), consumer("b", priority=1), consumer("c", priority=1)]
    chosen = choose_active(partition(1, partitioned=True), members)
    assert chosen is members[2]


def test_a_ring_keeps_most_topics_with_their_consumer_when_one_comes() -> None:
    members = [consumer(name) for name in "abc"]
    topics = [partition(0, partitioned=False, topic=f"topic-{n}") for n in range(200)]
    before = [choose_active(topic, members) for topic in topics]
    after = [choose_active(topic, [*members, consumer("d")]) for topic in topics]
    assert {member.name for member in before if member} == {"a", "b", "c"}
    moved = [new for old, new in zip(before, after, strict=True) if new is not old]
    assert 20 < len(moved) < 100
    assert {member.name for member in moved if member} == {"d"}


@pytest.mark.parametrize(
    ("topic", "names", "active"),
    [
        ("failover-02aad-0", "c430 c776 c911", "c911"),
        ("failover-02aad-0", "c430 c776 c911 d310", "c911"),
        ("failover-02aad-0", "c430 c776 c911 d223 d310 d633", "c911"),
        ("failover-02aad-3", "c606 d734", "d734"),
        ("failover-02aad-4", "c105 d283", "c105"),
    ],
)
def test_the_ring_is_that_of_the_real_broker(topic: str, names: str, active: str) -> None:
    """As Pulsar 4.0.0 chose."""
    members = [consumer(name) for name in names.split()]
    chosen = choose_active(partition(0, partitioned=False, topic=topic), members)
    assert chosen is not None
    assert chosen.name == active


def test_who_is_alone_is_chosen_without_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """To load what hashes takes a tenth of a second, and exclusive consumers are always alone."""
    monkeypatch.setattr(failover, "_distance", None)
    (member,) = members = [consumer("a")]
    assert choose_active(partition(0, partitioned=False), members) is member
