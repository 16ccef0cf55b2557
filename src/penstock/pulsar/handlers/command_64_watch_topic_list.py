"""WATCH_TOPIC_LIST: which topics of a namespace match a pattern, now and whenever that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import limits
from penstock.pace import Pace
from penstock.pulsar.handlers.answers import check_one_more, refusal
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topic_lists import TopicPattern, read_namespace, topics_hash
from penstock.pulsar.topic_watcher import TopicWatcher
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandWatchTopicList,
    CommandWatchTopicListSuccess,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call, Client


@handles(BaseCommand.WATCH_TOPIC_LIST, refuse=refusal)
async def handle(request: CommandWatchTopicList, call: Call) -> None:
    client = call.client
    namespace = read_namespace(request.namespace)
    pattern = await TopicPattern.of(client, request.topics_pattern)
    if client.is_gone:
        return
    client.close_watcher(request.watcher_id)
    check_one_more("watcher", len(client.watchers), limits.PULSAR_CONNECTION_WATCHERS, "")
    watcher = TopicWatcher(client, request.watcher_id, call.broker.topics, namespace, pattern)
    client.watchers[request.watcher_id] = watcher
    watcher.start()
    async with client.listing:
        if client.watchers.get(request.watcher_id) is watcher:
            await _list(request, client, watcher)


async def _list(request: CommandWatchTopicList, client: Client, watcher: TopicWatcher) -> None:
    names = await watcher.names()
    if client.watchers.get(request.watcher_id) is not watcher:
        return  # The client went, or closed it, meanwhile.
    found = topics_hash(names)
    listed = CommandWatchTopicListSuccess(
        request_id=request.request_id, watcher_id=request.watcher_id, topics_hash=found
    )
    if request.topics_hash != found:
        await Pace().each(names, listed.topic.append)
    command = BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST_SUCCESS, watchTopicListSuccess=listed)
    # First, so that what changes is told after it.
    client.send(command)
    watcher.opened()
