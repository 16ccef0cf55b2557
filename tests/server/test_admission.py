"""Goal: nobody has all connections, and nobody keeps one by sending next to nothing."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from penstock import limits
from penstock.memory import Memory
from penstock.server.connection import _network_address
from penstock.server.connections import Connections
from scripted_host import Host, frame, until


async def test_connections_that_drip_are_all_cut(monkeypatch):
    # Goal: 300 clients that send a byte now and then, of a head or of a body, keep no place.
    monkeypatch.setattr(limits, "FRAME_SECONDS", 1)
    host = Host()
    await host.start()
    peers = [await host.connect() for _ in range(300)]
    beginnings = [frame(bytes(1 << 20))[:size] for size in (1, 5, 9)]
    for number, peer in enumerate(peers):
        if number % 2:
            peer.send(b"served once")
        peer.writer.write(beginnings[number % 3])

    async def drip() -> None:
        while True:
            for peer in peers:
                if not peer.writer.is_closing():
                    peer.writer.write(b"\x10")
            await asyncio.sleep(0.2)
            host.connections.sweep(asyncio.get_running_loop().time())

    dripping = asyncio.ensure_future(drip())
    await until(lambda: all(peer.session.closed for peer in peers))
    assert dripping.cancel(), "it went on to the end"
    assert len(host.connections) == 0
    host.server.close()


async def test_one_address_has_its_share_of_connections_only():
    host = Host()
    host.connections = Connections("", Memory(), address_connections_max=2)
    await host.start()
    for _ in range(3):
        first, second = await host.connect(), await host.connect()
        for peer in (first, second):
            peer.send(b"asked")
            await until(lambda peer=peer: peer.session.received)
        reader, _ = await asyncio.open_connection("127.0.0.1", host.port)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        for peer in (first, second):
            peer.writer.close()
        await until(lambda: len(host.connections) == 0)
    host.server.close()


async def test_who_connects_and_says_nothing_keeps_nobody_of_its_address_out():
    host = Host()
    host.connections = Connections("", Memory(), address_connections_max=3)
    await host.start()
    asking = await host.connect()
    asking.send(b"asked")
    await until(lambda: asking.session.received)
    silent = [await host.connect() for _ in range(2)]
    for number in range(5):
        silent.append(await host.connect())
        await until(lambda gone=silent[number]: gone.session.closed)
        assert not silent[number + 1].session.closed, "the one that came first goes"
        assert len(host.connections) == 3
    assert not asking.session.closed
    host.server.close()


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        (("10.1.2.3", 80), "10.1.2.3"),
        (("2001:db8:1:2:3:4:5:6", 80, 0, 0), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 80, 0, 2), "fe80::/64"),
        (("::ffff:10.1.2.3", 80, 0, 0), "10.1.2.3"),
        (None, "?"),
    ],
)
def test_an_address_is_what_one_client_has_only_one_of(peer, network):
    assert _network_address(peer) == network
