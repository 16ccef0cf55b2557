"""Goal: what an Iggy client asks about many topics has no log opened; answers are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from iggy_dialog import STREAM, TOPIC, Dialog, producer_batch
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.storage import Storage
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.message import Message

DESCRIBING: dict[Command, Message] = {
    Command.GET_STREAM: requests.StreamRequest(STREAM),
    Command.GET_STREAMS: requests.Empty(),
    Command.GET_TOPIC: requests.TopicRequest(STREAM, TOPIC),
    Command.GET_TOPICS: requests.StreamRequest(STREAM),
}


async def test_closed_logs_are_described_as_open_ones_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    dialog = Dialog(broker)
    await dialog.set_up(partitions=3)
    for number in range(5):
        await dialog.produce(producer_batch(b"one", b"two" * (number + 1)), 2)
    before = {name: (await dialog.ask(name, asked)).body for name, asked in DESCRIBING.items()}
    await broker.close()
    broker = await Broker.open(tmp_path, BrokerSettings())
    dialog = Dialog(broker)
    await dialog.log_in()
    looked_at = []
    summaries = Storage.summaries

    async def counted(self: Storage, partitions: object) -> object:
        looked_at.append(partitions)
        return await summaries(self, partitions)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Storage, "summaries", counted)
    after = {name: (await dialog.ask(name, asked)).body for name, asked in DESCRIBING.items()}
    assert after == before
    (topic,) = broker.topics.all()
    stats = replies.Stats.decode((await dialog.ask(Command.GET_STATS, requests.Empty())).body)
    assert stats.messages_count == 10
    assert stats.messages_size > 0
    assert not any(partition.is_open for partition in topic.partitions)
    assert len(looked_at) == 1, "what does not change is looked at once"
    # What is written once it is open counts too.
    await dialog.produce(producer_batch(b"one"), 1)
    stats = replies.Stats.decode((await dialog.ask(Command.GET_STATS, requests.Empty())).body)
    assert stats.messages_count == 11
    await broker.close()


async def test_a_log_that_can_not_be_read_counts_as_empty(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    dialog = Dialog(broker)
    await dialog.set_up()
    await broker.close()
    (topic,) = broker.topics.all()
    folder = tmp_path / "topics" / topic.id.hex / "0"
    broker = await Broker.open(tmp_path, BrokerSettings())
    folder.rename(tmp_path / "elsewhere")
    dialog = Dialog(broker)
    await dialog.log_in()
    stats = replies.Stats.decode((await dialog.ask(Command.GET_STATS, requests.Empty())).body)
    assert (stats.partitions_count, stats.messages_count) == (1, 0)
    (tmp_path / "elsewhere").rename(folder)
    await broker.close()
