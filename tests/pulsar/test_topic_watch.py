"""Goal: a client with a pattern knows the topics that match, now and as they come and go; and no
pattern holds the broker up.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.topics import changes
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.pulsar import topic_watcher
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.topic_lists import TopicPattern, topics_hash
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.requests import patterns
from pulsar_peer import Command, Peer

SHOP = "persistent://acme/shop/"
ORDERS = "acme/shop/orders-.*"


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("acme/shop/orders-.*", "persistent://acme/shop/orders-1", True),
        ("persistent://acme/shop/orders-.*", "persistent://acme/shop/orders-1", True),
        ("acme/shop/orders", "persistent://acme/shop/orders-partition-12", True),
        ("acme/shop/orders", "persistent://acme/shop/orders-1", False),
        ("acme/shop/(a|b)[0-9]{2}", "persistent://acme/shop/b17", True),
        (r"acme/shop/a\.b[.*+?]+", "persistent://acme/shop/a.b*?", True),
        (r"acme/shop/a\*\*\*", "persistent://acme/shop/a***", True),
        ("acme/shop/(?:(a|b)*[0-9]?)*", "persistent://acme/shop/ab1b", True),
    ],
)
async def test_a_pattern_is_one_of_whole_names(
    peer: Peer, pattern: str, name: str, matches: bool
) -> None:
    taken = await TopicPattern.of(peer.client, pattern)
    assert await taken.matching([name]) == [name] * matches


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=b)", "a(", "x" * 51, "((.{999}){999}){999}"])
async def test_what_re2_can_not_take_is_refused(peer: Peer, pattern: str) -> None:
    with pytest.raises(RefusedError) as refused:
        await TopicPattern.of(peer.client, pattern)
    assert refused.value.code == api.NotAllowedError


async def test_the_loop_matches_no_name(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()
    held = patterns._held

    def noted(compiled: object, names: list[str]) -> list[str]:
        threads.add(threading.get_ident())
        return held(compiled, names)

    monkeypatch.setattr(patterns, "_held", noted)
    # Tried in all ways, one name would take a second.
    pattern = await TopicPattern.of(peer.client, "(|.)" * 9 + ".*.*b")
    names = [f"{SHOP}{'a' * 1000}{number}" for number in range(100)]
    assert await pattern.matching([*names, names[0] + "b"]) == [names[0] + "b"]
    assert threads
    assert threading.get_ident() not in threads


async def watch(
    peer: Peer, watcher_id: int = 1, **options: object
) -> api.CommandWatchTopicListSuccess:
    asked = {"namespace": "acme/shop", "topics_pattern": ORDERS, **options}
    wanted = api.CommandWatchTopicList(request_id=9, watcher_id=watcher_id, **asked)  # type: ignore[arg-type]
    command = Command(type=Command.WATCH_TOPIC_LIST, watchTopicList=wanted)
    listed: api.CommandWatchTopicListSuccess = await peer.ask(
        command, Command.WATCH_TOPIC_LIST_SUCCESS
    )
    assert (listed.request_id, listed.watcher_id) == (9, watcher_id)
    return listed


async def create(broker: Broker, *names: str, partitions: int = 1) -> None:
    for name in names:
        await broker.topics.create(
            TopicName("acme", "shop", name), partitions, partitioned=partitions > 1
        )


async def hear(peer: Peer) -> tuple[Sequence[str], Sequence[str], str]:
    update = await peer.hear(Command.WATCH_TOPIC_UPDATE)
    assert update.watcher_id == 1
    return sorted(update.new_topics), sorted(update.deleted_topics), update.topics_hash


async def test_a_watcher_hears_what_is_there_and_what_changes(peer: Peer, broker: Broker) -> None:
    await create(broker, "orders-1", "other")
    listed = await watch(peer)
    assert list(listed.topic) == [SHOP + "orders-1"]
    assert listed.topics_hash == topics_hash([SHOP + "orders-1"])
    await create(broker, "orders-2", "another")
    await create(broker, "orders-3", partitions=2)
    new = [SHOP + name for name in ("orders-2", "orders-3-partition-0", "orders-3-partition-1")]
    assert await hear(peer) == (new, [], topics_hash([SHOP + "orders-1", *new]))
    topic = broker.topics.get(TopicName("acme", "shop", "orders-1"))
    assert topic is not None
    await broker.topics.delete(topic)
    assert await hear(peer) == ([], [SHOP + "orders-1"], topics_hash(new))


async def test_watchers_list_a_namespace_one_after_another(
    peer: Peer, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for watcher_id in range(1, 6):
        await watch(peer, watcher_id)
    lists = topic_watcher.topics_of
    now = most = 0

    async def counted(*arguments: Any) -> list[str]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        try:
            return await lists(*arguments)
        finally:
            now -= 1

    monkeypatch.setattr(topic_watcher, "topics_of", counted)
    await create(broker, "orders-1")
    told = [await peer.hear(Command.WATCH_TOPIC_UPDATE) for _ in range(5)]
    assert {update.watcher_id for update in told} == {1, 2, 3, 4, 5}
    assert most == 1


async def test_a_client_has_one_list_made_at_a_time(
    peer: Peer, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred lists of 3,000 names each, all begun at once, were a hundred megabytes."""
    await create(broker, "orders-1")
    matching = TopicPattern.matching
    now = most = 0

    async def counted(self: TopicPattern, names: Iterable[str]) -> list[str]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await matching(self, names)
        finally:
            now -= 1

    monkeypatch.setattr(TopicPattern, "matching", counted)
    for number in range(10):
        fields: dict[str, Any] = {"namespace": "acme/shop", "topics_pattern": ORDERS}
        watched = api.CommandWatchTopicList(request_id=number, watcher_id=number, **fields)
        peer.say(Command(type=Command.WATCH_TOPIC_LIST, watchTopicList=watched))
        listed = api.CommandGetTopicsOfNamespace(request_id=number, **fields)
        peer.say(Command(type=Command.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=listed))
    for kind in (Command.WATCH_TOPIC_LIST_SUCCESS, Command.GET_TOPICS_OF_NAMESPACE_RESPONSE):
        for _ in range(10):
            heard = await peer.hear(kind)
            names = heard.topic if kind == Command.WATCH_TOPIC_LIST_SUCCESS else heard.topics
            assert list(names) == [SHOP + "orders-1"]
    assert most == 1


async def test_what_changes_is_noted_once_for_all_who_watch(
    peer: Peer, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[changes.Change] = []

    class Counted(changes.Change):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            noted.append(self)

    for watcher_id in range(1, 21):
        await watch(peer, watcher_id)
    monkeypatch.setattr(changes, "Change", Counted)
    await create(broker, *(f"orders-{number}" for number in range(30)))
    assert len(noted) == 30
    missing = dict.fromkeys(range(1, 21), 30)
    while any(missing.values()):
        update = await peer.hear(Command.WATCH_TOPIC_UPDATE)
        missing[update.watcher_id] -= len(update.new_topics)
    assert set(missing.values()) == {0}
    kept = [weakref.ref(each) for each in noted]
    noted.clear()
    gc.collect()
    assert sum(each() is not None for each in kept) <= 1, "but for the last, nobody needs them"


async def test_partitions_and_names_that_change_are_told(peer: Peer, broker: Broker) -> None:
    await create(broker, "orders-1", partitions=2)
    await watch(peer)
    topic = broker.topics.get(TopicName("acme", "shop", "orders-1"))
    assert topic is not None
    await broker.topics.add_partitions(topic, 3)
    new, gone, _ = await hear(peer)
    assert (SHOP + "orders-1-partition-2" in new, gone) == (True, [])
    await broker.topics.configure(topic, lambda _: {}, name="orders-9")
    new, gone, _ = await hear(peer)
    assert [len(new), len(gone)] == [3, 3]
    assert all("orders-9" in name for name in new)
    await broker.topics.remove_partitions(topic, 2)
    left = SHOP + "orders-9-partition-0"
    assert await hear(peer) == ([left], sorted({*new} - {left}), topics_hash([left]))
    await broker.topics.remove_partitions(topic, 1)
    assert await hear(peer) == ([], [left], topics_hash([]))


async def test_who_knows_the_list_does_not_get_it(peer: Peer, broker: Broker) -> None:
    await create(broker, "orders-1")
    listed = await watch(peer, topics_hash=topics_hash([SHOP + "orders-1"]))
    assert list(listed.topic) == []


async def test_who_leaves_hears_no_more(peer: Peer, broker: Broker) -> None:
    await watch(peer)
    await watch(peer, 2)
    close = api.CommandWatchTopicListClose(request_id=4, watcher_id=2)
    command = Command(type=Command.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=close)
    assert (await peer.ask(command, Command.SUCCESS)).request_id == 4
    await create(broker, "orders-1")
    await hear(peer)
    await create(broker, "orders-2")
    peer.lose()
    await asyncio.sleep(0.2)
    assert peer.silent(Command.WATCH_TOPIC_UPDATE)
    assert broker.topics.changes._namespaces.get(NamespaceName("acme", "shop")) is None


async def test_watchers_are_bounded(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PULSAR_CONNECTION_WATCHERS", 2)
    for watcher_id in (1, 2, 2):
        await watch(peer, watcher_id)
    for options in ({}, {"watcher_id": 1, "topics_pattern": "(a"}, {"namespace": "none"}):
        fields = {"watcher_id": 3, "namespace": "acme/shop", "topics_pattern": ORDERS, **options}
        wanted = api.CommandWatchTopicList(request_id=9, **fields)  # type: ignore[arg-type]
        command = Command(type=Command.WATCH_TOPIC_LIST, watchTopicList=wanted)
        refused = await peer.ask(command, Command.ERROR)
        assert (refused.request_id, refused.error) == (9, api.NotAllowedError)


@pytest.mark.parametrize(("pattern", "filtered"), [(ORDERS, True), ("(a)(?=b)", False)])
async def test_a_list_is_filtered_where_the_pattern_is_taken(
    peer: Peer, broker: Broker, pattern: str, filtered: bool
) -> None:
    await create(broker, "orders-1", "other")
    asked = api.CommandGetTopicsOfNamespace(
        request_id=1, namespace="acme/shop", topics_pattern=pattern
    )
    listed = await peer.ask(
        Command(type=Command.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked),
        Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    )
    names = [SHOP + "orders-1"] if filtered else [SHOP + "orders-1", SHOP + "other"]
    assert (listed.filtered, list(listed.topics)) == (filtered, names)
    assert listed.topics_hash == topics_hash(names)
