"""Goal: a member of a group that falls silent loses its partitions to the others, and hears it.

Method: sessions over a transport that listens, and a clock that the test turns.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from conversation import Conversation
from group_house import VirtualClock
from iggy_dialog import CLIENT, SESSIONS, STREAM, TOPIC, Dialog
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.iggy import silence
from penstock.iggy.wire import frame, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.frame import EvictionReason
from penstock.iggy.wire.identifiers import Identifier
from penstock.session import Buffers

GROUP = requests.ConsumerGroupRequest(STREAM, TOPIC, Identifier("g"))
SECONDS = 36


class Listener:
    """A transport that keeps what is written and why it was closed."""

    peer = "127.0.0.1:50001"
    address = "127.0.0.1"
    local_address = ("127.0.0.1", 8090)

    def __init__(self) -> None:
        self.heard = b""
        self.closed = ""

    def write(self, parts: Buffers) -> None:
        self.heard += b"".join(parts)

    @property
    def sends_files(self) -> bool:
        return False

    async def writable(self) -> None:
        """Take everything at once."""

    def close(self, reason: str) -> None:
        self.closed = reason


class Member(Dialog):
    """A client over a transport that listens."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.transport = Listener()
        self.session = SESSIONS.make(broker, self.transport)
        self._conversation = Conversation(self.session, self._written, self._failed)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    clock = VirtualClock()
    monkeypatch.setattr(silence, "Deadlines", lambda: clock)
    monkeypatch.setattr(silence, "time", SimpleNamespace(monotonic=clock.time))
    return clock


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = await Broker.open(tmp_path, BrokerSettings())
    yield broker
    await broker.close()


async def joined(broker: Broker, *, first: bool = False) -> Member:
    member = Member(broker)
    if first:
        await member.set_up(2)
        create = requests.CreateConsumerGroup(STREAM, TOPIC, "g")
        await member.ask(Command.CREATE_CONSUMER_GROUP, create)
    await member.log_in()
    await member.ask(Command.JOIN_CONSUMER_GROUP, GROUP)
    return member


def test_the_time_is_that_of_iggy_server() -> None:
    assert limits.IGGY_SILENCE_SECONDS == SECONDS


async def test_a_silent_member_gives_its_partitions_up(broker: Broker, clock: VirtualClock) -> None:
    silent, lively = await joined(broker, first=True), await joined(broker)
    synced = await lively.ask(Command.SYNC_CONSUMER_GROUP, GROUP)
    assert synced.body[8:].hex() == "0100000001000000"
    for _ in range(9):
        clock.advance(SECONDS / 10)
        assert (await lively.ask(Command.PING)).status == 0
        assert not silent.transport.closed
    clock.advance(SECONDS / 10)
    evicted = silent.transport.heard
    assert (len(evicted), evicted[60], evicted[-1]) == (
        frame.HEADER_SIZE,
        frame.FrameKind.EVICTION,
        EvictionReason.STALE_CLIENT,
    )
    assert evicted[128:144] == CLIENT
    clock.advance(SECONDS * 0.85)
    assert not lively.transport.closed
    synced = await lively.ask(Command.SYNC_CONSUMER_GROUP, GROUP)
    assert synced.body[8:].hex() == "020000000000000001000000"


async def test_who_is_in_no_group_may_be_silent(broker: Broker, clock: VirtualClock) -> None:
    member = await joined(broker, first=True)
    await member.ask(Command.LEAVE_CONSUMER_GROUP, GROUP)
    clock.advance(3 * SECONDS)
    assert not member.transport.closed
    await member.ask(Command.JOIN_CONSUMER_GROUP, GROUP)
    clock.advance(3 * SECONDS)
    assert member.transport.closed


async def test_who_waits_for_an_answer_is_not_silent(broker: Broker, clock: VirtualClock) -> None:
    member = await joined(broker, first=True)
    member.session._client.silence.asked()
    clock.advance(3 * SECONDS)
    assert not member.transport.closed
    member.session._client.silence.answered()
    clock.advance(3 * SECONDS)
    assert member.transport.closed


async def test_a_connection_that_ended_is_watched_no_more(
    broker: Broker, clock: VirtualClock
) -> None:
    member = await joined(broker, first=True)
    member.session.close()
    clock.advance(3 * SECONDS)
    assert not member.transport.closed
