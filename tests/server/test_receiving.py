"""Goal: clients that send large frames share one part of each pass, and others go on beside them.

Method: receivers that note when they may go on, by a clock of the test's own; then real sockets.
"""

from __future__ import annotations

import asyncio

import pytest

from hand_clock import Clock
from patience import until
from penstock import limits
from penstock.server import receiving as receiving_module
from penstock.server.connection import Connection
from penstock.server.receiving import Receiving
from scripted_host import Host

SHARE = limits.TURN_MICROSECONDS / 1_000_000
MIB = 1 << 20


class Receiver:
    def __init__(self, name: str, goes_on: list[str]) -> None:
        self.name = name
        self.goes_on = goes_on

    def receive_on(self) -> None:
        self.goes_on.append(self.name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(receiving_module, "perf_counter", clock)
    return clock


@pytest.fixture
async def host():
    host = Host()
    await host.start()
    yield host
    host.server.close()
    await host.connections.cut()


def received(receiving: Receiving, receiver: Receiver, clock: Clock, seconds: float) -> bool:
    receiving.begin()
    clock.now += seconds
    return receiving.has_time_left(receiver)


async def test_one_goes_on_until_the_share_is_over(clock):
    receiving, goes_on = Receiving(), []
    receiver = Receiver("a", goes_on)
    part = SHARE * 0.4
    assert [received(receiving, receiver, clock, part) for _ in range(3)] == [True, True, False]
    assert goes_on == []
    await asyncio.sleep(0)
    assert goes_on == ["a"]
    assert received(receiving, receiver, clock, part)


async def test_what_was_not_received_in_is_no_time_of_anybody(clock):
    receiving = Receiving()
    for _ in range(3):
        clock.now += 10 * SHARE
        assert received(receiving, Receiver("a", []), clock, SHARE * 0.1)


async def test_many_go_on_in_rotation_and_few_at_a_time(clock):
    receiving, goes_on = Receiving(), []
    receivers = {name: Receiver(name, goes_on) for name in "abcde"}
    for receiver in receivers.values():
        received(receiving, receiver, clock, SHARE)
    order = ""
    for _ in range(5):
        await asyncio.sleep(0)
        order += "".join(goes_on)
        for name in tuple(goes_on):
            goes_on.remove(name)
            received(receiving, receivers[name], clock, SHARE)
    assert order == "abcdeabcde"


async def test_those_who_send_nothing_more_keep_nobody_waiting(clock):
    receiving, goes_on = Receiving(), []
    for name in "abcde":
        received(receiving, Receiver(name, goes_on), clock, SHARE)
    for _ in range(3):
        await asyncio.sleep(0)
    assert "".join(goes_on) == "abcde"


async def test_a_large_frame_comes_whole_in_parts_that_use_a_share_each(host, clock, monkeypatch):
    parts: list[int] = []
    space = Connection.get_buffer

    def taking_time(connection: Connection, sizehint: int) -> memoryview:
        buffer = space(connection, sizehint)
        clock.now += SHARE
        parts.append(len(buffer))
        return buffer

    monkeypatch.setattr(Connection, "get_buffer", taking_time)
    peers = [await host.connect() for _ in range(3)]
    text = bytes(range(256)) * (3 * MIB // 256)
    for peer in peers:
        peer.send(text)
    assert [await peer.answer() for peer in peers] == [text] * 3
    assert max(parts) <= max(limits.RECEIVED_TOGETHER_BYTES, limits.RECEIVE_BUFFER_BYTES)
    for peer in peers:
        peer.send(b"once more")
    assert [await peer.answer() for peer in peers] == [b"once more"] * 3


async def test_one_that_is_cut_while_it_waits_for_its_share_harms_nobody(host, clock, monkeypatch):
    monkeypatch.setattr(receiving_module, "_SHARE_SECONDS", 0)
    host.connections.receiving = Receiving()
    peer = await host.connect()
    (connection,) = host.connections._open
    monkeypatch.setattr(receiving_module, "_TOGETHER", 0)
    peer.writer.write((8 * MIB).to_bytes(4) + bytes(MIB))
    await until(lambda: host.connections.receiving._waiting)
    connection.abort("it is cut")
    await until(lambda: not len(host.connections))
    monkeypatch.setattr(receiving_module, "_TOGETHER", 2)
    await until(lambda: not host.connections.receiving._waiting)
    other = await host.connect()
    other.send(bytes(MIB))
    assert await other.answer() == bytes(MIB)
