"""What a repository stored is what it gives back, and what belongs together lasts together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID

import pytest

from penstock.metadata.classic_groups import (
    ClassicGroupRepository,
    ClassicGroupRow,
    ClassicMemberRow,
)
from penstock.metadata.errors import MetadataError
from penstock.metadata.namespaces import NamespaceRepository, NamespaceRow
from penstock.metadata.offsets import OffsetRepository, OffsetRow
from penstock.metadata.properties import PropertyRepository
from penstock.metadata.store import MetadataStore
from penstock.metadata.subscriptions import CursorRow, SubscriptionRepository, SubscriptionRow
from penstock.metadata.tables import (
    CLASSIC_GROUPS,
    CLASSIC_MEMBERS,
    COMMITTED_OFFSETS,
    CONSUMER_GROUPS,
    NAMESPACES,
    SUBSCRIPTIONS,
    TOPICS,
)
from penstock.metadata.topic_groups import TopicGroupRepository, TopicGroupRow
from penstock.metadata.topics import TopicRepository, TopicRow, TopicUpdate

ORDERS = TopicRow(UUID(int=1), "public", "shop", "orders", "shop.orders", 0, True, {"a": "1"}, 10)
BILLS = TopicRow(UUID(int=2), "public", "shop", "bills", "shop.bills", 1, False, {}, 5)


@pytest.fixture
async def reopened(tmp_path: Path) -> AsyncIterator[Callable[[], MetadataStore]]:
    """Gives a store whose memory is empty, over the same database."""
    stores: list[MetadataStore] = []

    def again() -> MetadataStore:
        stores.append(MetadataStore.open(tmp_path / "metadata.sqlite"))
        return stores[-1]

    yield again
    for store in stores:
        await store.close()


@pytest.mark.parametrize(
    ("row", "table"),
    [
        (NamespaceRow, NAMESPACES),
        (TopicRow, TOPICS),
        (OffsetRow, COMMITTED_OFFSETS),
        (SubscriptionRow, SUBSCRIPTIONS),
        (TopicGroupRow, CONSUMER_GROUPS),
        (ClassicGroupRow, CLASSIC_GROUPS),
        (ClassicMemberRow, CLASSIC_MEMBERS),
    ],
)
def test_rows_have_the_fields_of_their_table(row, table) -> None:
    assert row._fields == tuple(column.name for column in table.columns)


async def test_topics_and_partitions(reopened: Callable[[], MetadataStore]) -> None:
    topics = TopicRepository(reopened())
    await topics.insert(ORDERS, {0: 1, 1: 2})
    await topics.insert(BILLS, {0: 3})
    await topics.insert_partitions(ORDERS.id, {2: 4, 3: 5})
    await topics.update(TopicUpdate(BILLS.id, "acme", "shop", "b", "acme.shop.b", {"c": "2"}))
    found = TopicRepository(reopened())
    bills = BILLS._replace(tenant="acme", topic="b", kafka_name="acme.shop.b", config={"c": "2"})
    assert found.all() == [bills, ORDERS]
    assert all(isinstance(topic.partitioned, bool) for topic in found.all())
    assert found.partition_ids() == {ORDERS.id: {0: 1, 1: 2, 2: 4, 3: 5}, BILLS.id: {0: 3}}
    assert found.partition_ids_given() == 5


async def test_a_topic_is_stored_with_its_partitions_or_not_at_all(
    reopened: Callable[[], MetadataStore],
) -> None:
    topics = TopicRepository(reopened())
    await topics.insert(ORDERS, {0: 1})
    with pytest.raises(MetadataError):
        await topics.insert(BILLS._replace(kafka_name="shop.orders"), {0: 2})
    with pytest.raises(MetadataError):
        await topics.insert_partitions(BILLS.id, {0: 2})
    assert list(TopicRepository(reopened()).partition_ids()) == [ORDERS.id]


async def test_what_is_about_a_topic_goes_with_it_and_its_ids_are_not_given_again(
    reopened: Callable[[], MetadataStore],
) -> None:
    store = reopened()
    topics = TopicRepository(store)
    await topics.insert(ORDERS, {0: 1})
    await OffsetRepository(store).save([OffsetRow("kafka", "group", 1, 5, 0, "", 0)])
    await SubscriptionRepository(store).insert(SubscriptionRow(1, "audit", 5, {}))
    await TopicGroupRepository(store).insert(TopicGroupRow(ORDERS.id, 0, "readers"))
    await topics.delete(ORDERS.id)
    store = reopened()
    for repository in (OffsetRepository, SubscriptionRepository, TopicGroupRepository):
        assert repository(store).all() == []
    assert TopicRepository(store).partition_ids() == {}
    assert TopicRepository(store).partition_ids_given() == 1
    assert TopicRepository(store).deleted() == [ORDERS.id]
    await TopicRepository(store).forget_deleted([ORDERS.id])
    assert TopicRepository(reopened()).deleted() == []


async def test_a_namespace_is_renamed_with_its_topics_or_not_at_all(
    reopened: Callable[[], MetadataStore],
) -> None:
    store = reopened()
    shop = NamespaceRow("public", "shop", 0, 1)
    spaces, topics = NamespaceRepository(store), TopicRepository(store)
    await spaces.insert(shop)
    await spaces.insert(NamespaceRow("public", "other", 1, 2))
    await topics.insert(ORDERS, {0: 1})
    await topics.insert(BILLS, {0: 2})
    moved = TopicUpdate(ORDERS.id, "acme", "store", "orders", "acme.store.orders", {})
    with pytest.raises(MetadataError):
        await spaces.rename(0, "acme", "store", [moved, moved._replace(id=BILLS.id)])
    assert NamespaceRepository(reopened()).all()[0] == shop
    assert TopicRepository(reopened()).all() == [BILLS, ORDERS]
    await spaces.rename(0, "acme", "store", [moved])
    await spaces.delete("public", "other")
    assert NamespaceRepository(reopened()).all() == [NamespaceRow("acme", "store", 0, 1)]
    assert TopicRepository(reopened()).all()[1].kafka_name == "acme.store.orders"


async def test_offsets(reopened: Callable[[], MetadataStore]) -> None:
    store = reopened()
    await TopicRepository(store).insert(ORDERS, {0: 1, 1: 2})
    offsets = OffsetRepository(store)
    first = OffsetRow("kafka", "group", 1, (1 << 63) - 1, 3, "it's a note", 99)
    second = first._replace(partition_id=2)
    other = first._replace(name="other")
    await offsets.save([first._replace(offset=1), second, other])
    await offsets.save([first])
    await offsets.delete("kafka", "group", [2])
    assert set(OffsetRepository(reopened()).all()) == {first, other}
    await offsets.delete_owner("kafka", "group")
    assert OffsetRepository(reopened()).all() == [other]
    with pytest.raises(MetadataError):
        await offsets.save([first, first._replace(partition_id=99)])
    assert OffsetRepository(reopened()).all() == [other]


async def test_subscriptions(reopened: Callable[[], MetadataStore]) -> None:
    store = reopened()
    await TopicRepository(store).insert(ORDERS, {0: 1})
    subscriptions = SubscriptionRepository(store)
    audit = SubscriptionRow(1, "audit", 5, {"team": "blue"})
    await subscriptions.insert(audit)
    await subscriptions.insert(audit._replace(name="other"))
    await subscriptions.save(
        [
            CursorRow(1, "audit", 6, 0, [(0, 1 << 1023), (4, 1), (7, 3), (8, 1), (1 << 50, 1)]),
            CursorRow(1, "other", 6, 0, [(0, 1)]),
            CursorRow(9, "of no partition", 7, 0, [(0, 1)]),
        ]
    )
    await subscriptions.save([CursorRow(1, "audit", 7, 7, [(8, 0), (7, 5)])])
    await subscriptions.delete(1, "other")
    found = SubscriptionRepository(reopened()).all()
    assert found == [audit._replace(mark_delete=7)]
    blocks = SubscriptionRepository(reopened()).blocks()
    assert blocks == {(1, "audit"): {7: 5, 1 << 50: 1}}


async def test_groups_of_topics(reopened: Callable[[], MetadataStore]) -> None:
    store = reopened()
    await TopicRepository(store).insert(ORDERS, {0: 1})
    groups = TopicGroupRepository(store)
    rows = [TopicGroupRow(ORDERS.id, number, f"group {number}") for number in (2, 0, 1)]
    for row in rows:
        await groups.insert(row)
    await groups.delete(ORDERS.id, 0)
    assert TopicGroupRepository(reopened()).all() == [rows[2], rows[0]]


async def test_classic_groups(reopened: Callable[[], MetadataStore]) -> None:
    groups = ClassicGroupRepository(reopened())
    readers = ClassicGroupRow("readers", 3, "consumer", "range", "a")
    protocols = (("range", b"\0\1"), ("größe", b""), ("", bytes(300)))
    first = ClassicMemberRow("readers", "a", "", "client", "/host", 6000, 7000, protocols, b"all")
    second = first._replace(member_id="b", instance_id="i", protocols=())
    await groups.save(readers._replace(generation=2), [first._replace(member_id="gone")])
    await groups.save(readers, [first, second])
    await groups.save(readers._replace(id="others"), [first._replace(group_id="others")])
    await groups.delete("others")
    found = ClassicGroupRepository(reopened())
    assert (found.all(), sorted(found.members())) == ([readers], [first, second])
    await groups.replace_member("b", second._replace(member_id="c"), "c")
    found = ClassicGroupRepository(reopened())
    assert found.all() == [readers._replace(leader="c")]
    assert sorted(found.members()) == [first, second._replace(member_id="c")]


async def test_producer_ids_stay_reserved(reopened: Callable[[], MetadataStore]) -> None:
    assert PropertyRepository(reopened()).producer_ids_reserved() == 0
    await PropertyRepository(reopened()).reserve_producer_ids(1000)
    await PropertyRepository(reopened()).reserve_producer_ids(2000)
    assert PropertyRepository(reopened()).producer_ids_reserved() == 2000


async def test_epochs_count_starts_from_0_and_last_at_once(
    reopened: Callable[[], MetadataStore],
) -> None:
    # No store is closed before the next one opens, as after a crash.
    assert [PropertyRepository(reopened()).next_epoch() for _ in range(3)] == [0, 1, 2]
