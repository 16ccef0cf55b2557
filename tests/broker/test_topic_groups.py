"""Groups that last, and members that divide a topic's partitions: every partition, once."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.errors import (
    GroupExistsError,
    GroupFullError,
    UnknownGroupError,
    UnknownMemberError,
)
from penstock.broker.groups.member import JoinRequest
from penstock.broker.groups.topic_groups import Memberships, TopicGroup
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.broker.topics.topic import Topic

NAME = TopicName("public", "default", "orders")


def group_of(partitions: int) -> TopicGroup:
    topic = SimpleNamespace(id=uuid.uuid4(), partitions=[None] * partitions)
    return TopicGroup(cast("Topic", topic), 0, "billing", Memberships(Memory().clients))


@given(st.integers(1, 12), st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=30))
def test_every_partition_has_one_owner_whoever_comes_and_goes(
    partitions: int, moves: list[tuple[bool, int]]
) -> None:
    group = group_of(partitions)
    inside: set[int] = set()
    for joins, member in moves:
        before = group.generation
        changes = joins != (member in inside)
        if joins:
            group.join(member)
            inside.add(member)
        elif member in inside:
            group.leave(member)
            inside.discard(member)
        else:
            with pytest.raises(UnknownMemberError):
                group.leave(member)
        assert (group.generation > before) == changes
        shares = [group.assigned(member) for member in inside]
        owned = sorted(partition for share in shares for partition in share or [])
        assert owned == (list(range(partitions)) if inside else [])
        assert sorted(len(share) for share in group.members.values()) == sorted(
            len(share or []) for share in shares
        )


def test_member_that_is_not_in_has_no_assignment_and_one_too_many_has_an_empty_one() -> None:
    group = group_of(1)
    group.join("first")
    group.join("second")
    assert group.assigned("first") == [0]
    assert group.assigned("second") == []
    assert group.assigned("third") is None
    group.leave("first")
    assert group.assigned("second") == [0]


def test_member_may_read_its_own_once_it_was_told_the_newest_division() -> None:
    group = group_of(2)
    group.join("first")
    assert group.may_read("first", 0)
    assert group.sync("first") == [0, 1]
    assert group.may_read("first", 0)
    group.join("second")
    assert not group.may_read("first", 0)
    assert (group.sync("first"), group.sync("second")) == ([0], [1])
    assert group.may_read("first", 0)
    assert not group.may_read("first", 1)
    group.leave("second")
    assert not group.may_read("second", 1)
    assert group.sync("second") is None
    assert not group.may_read("first", 0)


def test_more_partitions_are_a_new_generation() -> None:
    group = group_of(1)
    group.join("only")
    before = group.generation
    cast("Any", group.topic).partitions.append(None)
    assert group.generation > before
    assert group.assigned("only") == [0, 1]


async def test_groups_last_and_members_do_not(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(NAME, 2)
    group = await broker.topic_groups.create(topic, "billing")
    await broker.topic_groups.create(topic, "audit")
    group.join("a connection")
    assert broker.topic_groups.of_member("a connection") == [group]
    with pytest.raises(GroupExistsError):
        await broker.topic_groups.create(topic, "billing")
    await broker.close()

    again = await Broker.open(tmp_path, BrokerSettings())
    found = again.topics.get(NAME)
    assert found is not None
    assert again.topic_groups.get(found, "billing").group_id == 0
    assert again.topic_groups.get(found, 1).name == "audit"
    assert again.topic_groups.of_member("a connection") == []
    await again.close()


async def test_deleted_group_is_gone_and_its_number_is_not_given_again(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(NAME, 1)
    group = await broker.topic_groups.create(topic, "billing")
    group.join("a connection")
    await broker.topic_groups.delete(group)
    with pytest.raises(UnknownGroupError):
        broker.topic_groups.get(topic, "billing")
    with pytest.raises(UnknownGroupError):
        await broker.topic_groups.delete(group)
    assert (await broker.topic_groups.create(topic, "billing")).group_id == 1
    await broker.close()


async def test_there_are_only_so_many_groups(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "TOPIC_GROUPS", 2)
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(NAME, 1)
    first = await broker.topic_groups.create(topic, "a")
    await broker.topic_groups.create(topic, "b")
    with pytest.raises(GroupFullError):
        await broker.topic_groups.create(topic, "c")
    first.join("a connection")
    await broker.topic_groups.delete(first)
    assert broker.topic_groups.of_member("a connection") == []
    await broker.topic_groups.create(topic, "c")
    await broker.close()


async def test_groups_go_with_their_topic_and_members_with_their_connection(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(NAME, 1)
    group = await broker.topic_groups.create(topic, "billing")
    group.join("a connection")
    broker.topic_groups.leave_all("a connection")
    assert group.members == {}
    await broker.topics.delete(topic)
    assert broker.topic_groups.all() == []
    await broker.close()


async def test_a_member_is_in_so_many_groups_only(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "MEMBER_GROUPS", 12)
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(NAME, 1)
    groups = [await broker.topic_groups.create(topic, f"g{number}") for number in range(13)]
    for group in groups[:12]:
        group.join("hog")
    with pytest.raises(GroupFullError):
        groups[12].join("hog")
    assert groups[12].members == {}
    # Where there is no memory, others are in a few.
    broker.memory.clients.bound = broker.memory.clients.used
    for group in groups[: limits.MEMBER_LEAST_GROUPS]:
        group.join("other")
    with pytest.raises(GroupFullError):
        groups[12].join("other")
    broker.topic_groups.leave_all("hog")
    groups[12].join("other")
    broker.topic_groups.leave_all("other")
    assert broker.memory.clients.used == 0
    await broker.close()


async def test_groups_count_for_the_address_of_who_made_them(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "ADDRESS_GROUPS", 2)
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(NAME, 1)
    first = await broker.topic_groups.create(topic, "a", "10.0.0.1")
    request = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10_000, 10_000)
    joining = broker.groups.join("kafka", request, "10.0.0.1")
    with pytest.raises(GroupFullError):
        await broker.topic_groups.create(topic, "b", "10.0.0.1")
    with pytest.raises(GroupFullError):
        broker.groups.join("kafka too", request, "10.0.0.1")
    await broker.topic_groups.create(topic, "b", "10.0.0.2")
    await broker.topic_groups.delete(first)
    await broker.topic_groups.create(topic, "c", "10.0.0.1")
    joining.cancel()
    await broker.topics.delete(topic)
    topic = await broker.topics.create(NAME, 1)
    await broker.topic_groups.create(topic, "c", "10.0.0.1")
    await broker.close()
