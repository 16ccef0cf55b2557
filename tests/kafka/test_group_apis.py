"""Goal: the group APIs say what the groups do, in every version, and offsets last.

Method: sessions without sockets; the first wait of a group is switched off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kafka_dialog import WAIT_SECONDS, Dialog, kafka_broker
from penstock.broker.groups.settings import GroupSettings
from penstock.kafka.wire import ErrorCode, Struct, api

GROUP = "readers"
GROUP_OPERATIONS, NOT_ASKED = 3400, -(1 << 31)
"""Read, delete, describe, describe and alter configs: what Kafka 4.3 without an authorizer says."""
AT_ONCE = GroupSettings(initial_rebalance_delay_ms=0)


@pytest.fixture
async def dialog(tmp_path: Path) -> AsyncIterator[Dialog]:
    async with kafka_broker(tmp_path, groups=AT_ONCE) as broker:
        yield Dialog(broker)


def join_fields(member_id: str = "", **fields: Any) -> dict[str, Any]:
    protocol = api("JoinGroup").request.JoinGroupRequestProtocol(name="range", metadata=b"topics")
    return {
        "group_id": GROUP,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [protocol],
        **fields,
    }


async def join(dialog: Dialog, version: int = 9, **fields: Any) -> Struct:
    """Join, a second time with the id that newer versions are given first."""
    joined = await dialog.ask("JoinGroup", version, **join_fields(**fields))
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = await dialog.ask("JoinGroup", version, **join_fields(joined.member_id))
    return joined


async def sync(dialog: Dialog, joined: Struct, version: int = 5, **fields: Any) -> Struct:
    given = api("SyncGroup").request.SyncGroupRequestAssignment
    return await dialog.ask(
        "SyncGroup",
        version,
        **{
            "group_id": GROUP,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [given(member_id=joined.member_id, assignment=b"all")],
            **fields,
        },
    )


async def stable(dialog: Dialog) -> Struct:
    joined = await join(dialog)
    assert (await sync(dialog, joined)).assignment == b"all"
    return joined


@pytest.mark.parametrize("version", range(10))
async def test_every_version_of_the_five_goes_through_a_life(dialog: Dialog, version: int) -> None:
    joined = await join(dialog, version)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, joined.member_id)
    assert [each.metadata for each in joined.members] == [b"topics"]
    assert joined.protocol_name == "range"
    synced = await sync(dialog, joined, min(version, 5))
    assert (synced.error_code, synced.assignment) == (0, b"all")
    member = {"group_id": GROUP, "member_id": joined.member_id}
    beat = await dialog.ask("Heartbeat", min(version, 4), generation_id=1, **member)
    assert beat.error_code == 0
    identity = api("LeaveGroup").request.MemberIdentity(member_id=joined.member_id)
    for code in (0, ErrorCode.UNKNOWN_MEMBER_ID):
        left = await dialog.ask("LeaveGroup", min(version, 5), members=[identity], **member)
        codes = [each.error_code for each in left.members] or [left.error_code]
        assert codes == [code]


async def test_two_members_meet_in_one_generation(dialog: Dialog) -> None:
    leader = await stable(dialog)
    other = Dialog(dialog.broker)
    asked = await other.ask("JoinGroup", 9, **join_fields())
    joining = other.send("JoinGroup", 9, **join_fields(asked.member_id))
    await asyncio.sleep(0)
    beat = {"group_id": GROUP, "member_id": leader.member_id, "generation_id": 1}
    assert (await dialog.ask("Heartbeat", **beat)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    again = await dialog.ask("JoinGroup", 9, **join_fields(leader.member_id))
    follower = await asyncio.wait_for(joining, WAIT_SECONDS)
    assert again.generation_id == follower.generation_id == 2
    assert (len(again.members), follower.members) == (2, [])
    waiting = asyncio.ensure_future(sync(other, follower, assignments=[]))
    await asyncio.sleep(0)
    await sync(dialog, again)
    assert (await waiting).assignment == b""


async def test_a_member_whose_client_is_gone_waits_no_more(dialog: Dialog) -> None:
    await stable(dialog)
    other = Dialog(dialog.broker)
    asked = await other.ask("JoinGroup", 9, **join_fields())
    joining = other.send("JoinGroup", 9, **join_fields(asked.member_id))
    await asyncio.sleep(0)
    other.session.close()
    await asyncio.wait_for(other.ended(), WAIT_SECONDS)
    assert not joining.done(), "there is nobody to answer"
    joining.cancel()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
@pytest.mark.parametrize("version", [0, 6, 7, 9])
async def test_who_can_t_join_is_told_why(
    dialog: Dialog, fields: dict[str, Any], code: int, version: int
) -> None:
    refused = await dialog.ask("JoinGroup", version, **{**join_fields(), **fields})
    assert (refused.error_code, refused.generation_id) == (code, -1)
    assert refused.protocol_name == (None if version >= 7 else "")


async def test_errors_of_a_stranger(dialog: Dialog) -> None:
    joined = await stable(dialog)
    stranger = {"group_id": GROUP, "member_id": "x", "generation_id": 1}
    assert (await dialog.ask("Heartbeat", **stranger)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    refused = await sync(dialog, joined, generation_id=9)
    assert refused.error_code == ErrorCode.ILLEGAL_GENERATION
    refused = await sync(dialog, joined, protocol_name="sticky")
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = await sync(dialog, joined, protocol_type=None)
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    left = await dialog.ask("LeaveGroup", group_id="", members=[])
    assert left.error_code == ErrorCode.INVALID_GROUP_ID


async def test_groups_are_listed_and_described(dialog: Dialog) -> None:
    joined = await stable(dialog)
    await dialog.create_topic()
    await commit(dialog, "simple", 5)
    for version in range(6):
        listed = (await dialog.ask("ListGroups", version)).groups
        assert {each.group_id for each in listed} == {GROUP, "simple"}
    listed = (await dialog.ask("ListGroups", states_filter=["STABLE"])).groups
    assert [(each.group_id, each.group_state) for each in listed] == [(GROUP, "Stable")]
    assert (await dialog.ask("ListGroups", types_filter=["consumer"])).groups == []
    for version in range(7):
        asked = [GROUP, "simple", "missing"]
        response = await dialog.ask("DescribeGroups", version, groups=asked)
        known, simple, missing = response.groups
        (member,) = known.members
        assert (known.group_state, known.protocol_data) == ("Stable", "range")
        assert (member.member_id, member.client_id) == (joined.member_id, "tester")
        assert member.client_host == "/127.0.0.1"
        assert (member.member_metadata, member.member_assignment) == (b"topics", b"all")
        assert (simple.error_code, simple.group_state) == (0, "Empty")
        assert missing.group_state == "Dead"
        assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


# Offsets


async def commit(
    dialog: Dialog,
    group_id: str,
    offset: int,
    *,
    version: int = 9,
    topic: str | UUID = "orders",
    partition: int = 0,
    note: str | None = "note",
    **fields: Any,
) -> int:
    request = api("OffsetCommit").request
    part = request.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=note
    )
    key = "topic_id" if isinstance(topic, UUID) else "name"
    asked = request.OffsetCommitRequestTopic(**{key: topic}, partitions=[part])
    response = await dialog.ask(
        "OffsetCommit", version, group_id=group_id, topics=[asked], **fields
    )
    code: int = response.topics[0].partitions[0].error_code
    return code


async def committed(
    dialog: Dialog, group_id: str, version: int = 9, topic: str | UUID | None = "orders"
) -> list[tuple[int, str, int]]:
    request = api("OffsetFetch").request
    key = "topic_id" if isinstance(topic, UUID) else "name"
    old = request.OffsetFetchRequestTopic(name=str(topic), partition_indexes=[0, 1])
    new = request.OffsetFetchRequestTopics(**{key: topic}, partition_indexes=[0, 1])
    group = request.OffsetFetchRequestGroup(
        group_id=group_id, topics=None if topic is None else [new]
    )
    response = await dialog.ask(
        "OffsetFetch",
        version,
        group_id=group_id,
        topics=None if topic is None else [old],
        groups=[group],
    )
    topics = response.groups[0].topics if version >= 8 else response.topics
    return [
        (each.committed_offset, each.metadata, each.error_code)
        for found in topics
        for each in found.partitions
    ]


@pytest.mark.parametrize("version", range(11))
async def test_every_version_commits_and_fetches(dialog: Dialog, version: int) -> None:
    topic_id = await dialog.create_topic(partitions=2)
    named = topic_id if version >= 10 else "orders"
    assert await commit(dialog, GROUP, 7, version=version, topic=named) == 0
    expected = [(7, "note", 0), (-1, "", 0)]
    assert await committed(dialog, GROUP, version, named) == expected
    if version >= 2:
        assert await committed(dialog, GROUP, version, None) == expected[:1]
    # All versions know the same offsets.
    assert await committed(dialog, GROUP) == expected


async def test_nothing_committed_is_no_error(dialog: Dialog) -> None:
    assert await committed(dialog, "unknown") == [(-1, "", 0)] * 2
    assert await committed(dialog, "unknown", topic=None) == []
    assert await committed(dialog, "unknown", 10, uuid4()) == [(-1, "", 100)] * 2


async def test_each_partition_of_a_commit_is_judged_by_itself(dialog: Dialog) -> None:
    await dialog.create_topic()
    assert await commit(dialog, GROUP, 1, partition=5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await commit(dialog, GROUP, 1, topic="none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await commit(dialog, GROUP, 1, version=10, topic=uuid4()) == ErrorCode.UNKNOWN_TOPIC_ID
    large = "n" * 4097
    assert await commit(dialog, GROUP, 1, note=large) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await commit(dialog, GROUP, 1, note=None) == 0
    assert await committed(dialog, GROUP, topic=None) == [(1, "", 0)]


async def test_only_members_commit_to_a_group_that_has_some(dialog: Dialog) -> None:
    await dialog.create_topic()
    joined = await stable(dialog)
    member = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
    assert await commit(dialog, GROUP, 4) == ErrorCode.UNKNOWN_MEMBER_ID
    assert await commit(dialog, GROUP, 4, **member) == 0
    member["generation_id_or_member_epoch"] = 2
    assert await commit(dialog, GROUP, 4, **member) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(1, 10))
async def test_a_commit_by_an_unknown_member_is_refused_as_that(
    dialog: Dialog, version: int
) -> None:
    await dialog.create_topic()
    assert await commit(dialog, "by-offsets", 1) == 0
    await stable(dialog)
    stranger = {"member_id": "ghost", "generation_id_or_member_epoch": 1}
    for group in (GROUP, "by-offsets", "nobody-knows"):
        code = await commit(dialog, group, 9, version=version, **stranger)
        assert code == ErrorCode.UNKNOWN_MEMBER_ID
    assert (await committed(dialog, "by-offsets"))[0][0] == 1
    assert await committed(dialog, "nobody-knows", topic=None) == []


async def test_offsets_are_there_after_a_restart(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        await Dialog(broker).create_topic()
        assert await commit(Dialog(broker), GROUP, 12) == 0
    async with kafka_broker(tmp_path) as broker:
        assert (await committed(Dialog(broker), GROUP))[0] == (12, "note", 0)


async def test_a_commit_is_seen_by_a_request_that_does_not_wait_for_it(dialog: Dialog) -> None:
    await dialog.create_topic()
    committing = asyncio.ensure_future(commit(dialog, GROUP, 3))
    await asyncio.sleep(0)
    assert (await committed(dialog, GROUP))[0] == (3, "note", 0)
    assert await committing == 0


async def test_groups_are_deleted_with_their_offsets(dialog: Dialog) -> None:
    await dialog.create_topic()
    joined = await stable(dialog)
    await commit(dialog, "simple", 5)
    for version in range(3):
        response = await dialog.ask("DeleteGroups", version, groups_names=[GROUP, "none", ""])
        assert [each.error_code for each in response.results] == [
            ErrorCode.NON_EMPTY_GROUP,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.INVALID_GROUP_ID,
        ]
    identity = api("LeaveGroup").request.MemberIdentity(member_id=joined.member_id)
    await dialog.ask("LeaveGroup", group_id=GROUP, members=[identity])
    response = await dialog.ask("DeleteGroups", groups_names=[GROUP, "simple"])
    assert [each.error_code for each in response.results] == [0, 0]
    assert await committed(dialog, "simple", topic=None) == []
    assert (await dialog.ask("ListGroups")).groups == []


@pytest.mark.parametrize("version", range(3))
async def test_an_id_to_join_with_keeps_no_group_from_being_deleted(
    dialog: Dialog, version: int
) -> None:
    promised = await dialog.ask("JoinGroup", 9, **join_fields())
    assert promised.error_code == ErrorCode.MEMBER_ID_REQUIRED
    response = await dialog.ask("DeleteGroups", version, groups_names=[GROUP])
    assert response.results[0].error_code == 0
    assert (await dialog.ask("ListGroups")).groups == []
    late = await dialog.ask("JoinGroup", 9, **join_fields(promised.member_id))
    assert late.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert (await stable(dialog)).error_code == 0


@pytest.mark.parametrize("version", range(3, 7))
async def test_authorized_operations_of_groups_are_told_where_asked(
    dialog: Dialog, version: int
) -> None:
    await stable(dialog)
    for asked, of_group in ((True, GROUP_OPERATIONS), (False, NOT_ASKED)):
        response = await dialog.ask(
            "DescribeGroups",
            version,
            groups=[GROUP, "missing"],
            include_authorized_operations=asked,
        )
        known, missing = (each.authorized_operations for each in response.groups)
        assert known == of_group
        assert missing == (NOT_ASKED if version >= 6 else of_group)


async def test_the_coordinator_is_the_one_node(dialog: Dialog) -> None:
    for version in range(7):
        for key_type, code in ((0, 0), (1, 0), (2, ErrorCode.INVALID_REQUEST)):
            found = await dialog.ask(
                "FindCoordinator", version, key=GROUP, key_type=key_type, coordinator_keys=[GROUP]
            )
            place = found.coordinators[0] if version >= 4 else found
            expected = code if version >= 1 else 0
            assert place.error_code == expected
            if not expected:
                assert (place.node_id, place.host, place.port) == (0, "127.0.0.1", 9092)
