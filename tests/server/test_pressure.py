"""Goal: what connections hold is counted to the byte, given back, and cut where they are stuck."""

from __future__ import annotations

import asyncio
import socket

import pytest

from penstock import limits
from penstock.server import connections, progress
from penstock.server.progress import Progress, StuckHolders
from scripted_host import Host, frame, until

MIB = 1 << 20


@pytest.fixture
async def host():
    host = Host(defers=False)
    await host.start()
    yield host
    host.server.close()
    await host.connections.cut()


def memory_of(host: Host):
    return host.connections.memory


def held(host: Host) -> int:
    """What all connections say that they hold, which is what the accounts say."""
    for connection in host.connections._open:
        connection.count_unsent()
    in_all = sum(connection.held_bytes for connection in host.connections._open)
    assert in_all == memory_of(host).used
    return in_all


async def test_requests_and_their_answers_are_counted_until_they_are_taken(host):
    peer = await host.connect()
    peer.send(b"wait 1", b"wait 2" + bytes(100_000))
    await until(lambda: len(peer.session.received) == 2)
    assert held(host) == len(frame(b"wait 1")) + len(frame(b"wait 2")) + 100_000
    second = next(text for text in peer.session.waits if text.startswith(b"wait 2"))
    peer.session.waits[second].set_result([frame(bytes(5_000))])
    await until(lambda: memory_of(host).answers.used == 5_004)
    held(host)
    peer.session.waits[b"wait 1"].set_result([frame(b"first")])
    assert await peer.answer() == b"first"
    assert await peer.answer() == bytes(5_000)
    await until(lambda: held(host) == 0)


async def test_a_frame_is_counted_as_it_arrives(host):
    peer = await host.connect()
    whole = frame(bytes(3 * MIB))
    for end in (10, 1000, 400_000, 2 * MIB):
        peer.writer.write(whole[len(whole[:end]) and held(host) : end])
        await until(lambda end=end: held(host) == end)
    peer.writer.write(whole[2 * MIB :])
    assert len(await peer.answer()) == 3 * MIB
    await until(lambda: held(host) == 0)


async def test_what_a_client_leaves_behind_is_given_back(host):
    peer = await host.connect()
    peer.send(b"wait", b"bulk" + bytes(MIB), b"half a frame")
    peer.writer.write(frame(bytes(2 * MIB))[:MIB])
    await until(lambda: len(peer.session.received) == 2)
    for _ in range(30):
        peer.session.transport.write([bytes(MIB)])
    await until(lambda: held(host) > 10 * MIB)
    peer.writer.transport.abort()
    await until(lambda: memory_of(host).used == len(frame(b"wait")))
    peer.session.waits[b"wait"].set_result([frame(b"too late")])
    await until(lambda: memory_of(host).used == 0)


async def test_requests_that_never_end_are_given_back(host):
    peer = await host.connect()
    peer.send(b"wait")
    await until(lambda: memory_of(host).used > 0)
    peer.writer.close()
    await until(lambda: peer.session.closed == 1)
    host.connections.sweep(asyncio.get_running_loop().time() + limits.CLOSING_SECONDS + 1)
    await until(lambda: memory_of(host).used == 0)


async def test_a_client_is_not_read_while_memory_is_short(host):
    peer, other = await host.connect(), await host.connect()
    memory = memory_of(host)
    memory.caches.take(memory.budget)
    memory.answers.take(memory.budget)
    peer.send(b"for later", *[bytes(100_000)] * 10)
    await until(lambda: peer.session.received)
    await asyncio.sleep(0.05)
    assert peer.session.received == [b"for later"], "what is small is always read"
    assert memory.receiving.used <= 2 * limits.LEAST_MEMORY_BYTES
    memory.answers.take(-memory.budget)
    memory.caches.take(-memory.budget // 4)
    other.send(b"meanwhile")
    assert await other.answer() == b"meanwhile"
    assert await peer.answer() == b"for later"
    assert len(await peer.answer()) == 100_000
    memory.caches.take(-memory.caches.used)


def have_little(host: Host, budget: int):
    memory = memory_of(host)
    memory.budget = budget
    memory._for_large, memory.ample = budget * 3 // 4, budget // 4
    return memory


async def sockets_are_full(memory):
    held = None
    while held != memory.answers.used:
        held = memory.answers.used
        await asyncio.sleep(0.05)


def take_little(peer):
    """Have the system take so little for a peer that it is never seen to get on by that alone."""
    receiving = peer.writer.get_extra_info("socket")
    receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)


async def test_who_never_reads_is_cut_for_those_who_do(host, caplog, monkeypatch):
    monkeypatch.setattr(limits, "SHORTAGE_SECONDS", 0.1)
    caplog.set_level("INFO")
    memory = have_little(host, 32 * MIB)
    early, late, good = [await host.connect() for _ in range(3)]
    now = asyncio.get_running_loop().time()
    for number, peer in enumerate((early, late)):
        take_little(peer)
        peer.send(b"hello")
        await peer.answer()
        for _ in range(30):
            peer.session.transport.write([bytes(MIB)])
        await sockets_are_full(memory)
        host.connections.sweep(now + 2 * number)
        host.connections.sweep(now + 2 * number + 1)
    good.send(b"fine")
    assert await good.answer() == b"fine"
    assert early.session.closed == 0, "nobody is cut for one who holds next to nothing"
    good.send(bytes(MIB))
    assert await good.answer() == bytes(MIB)
    await until(lambda: early.session.closed == 1)
    assert late.session.closed == 0
    assert "memory is short" in caplog.text


def test_who_gets_on_is_not_stuck():
    progress = Progress()
    for second in range(1, 100):
        progress.look(held=16_000, moved=1_000 * second, now=second)
        assert progress.stuck_since is None
    progress.look(held=16_000, moved=99_999, now=100)
    progress.look(held=16_000, moved=99_999, now=101)
    assert progress.stuck_since == 99, "since when it was last seen to get on"


def test_who_waited_is_looked_at_anew():
    """It may have had no turn between what it waited for and the look."""
    progress = Progress()
    progress.look(held=16_000, moved=16_000, now=1)
    progress.look(held=16_000, moved=16_000, now=2)
    assert progress.stuck_since == 1
    progress.may_go_on()
    progress.look(held=16_000, moved=16_000, now=3)
    assert progress.stuck_since is None
    progress.look(held=16_000, moved=16_000, now=4)
    assert progress.stuck_since == 1


async def test_a_newcomer_is_served_beside_half_frames(host, monkeypatch):
    """As much as twice the memory there is, by clients that keep back the ends of their frames."""
    monkeypatch.setattr(limits, "SHORTAGE_SECONDS", 0.1)
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    memory = have_little(host, 8 * MIB)
    sweeping = asyncio.create_task(host.connections.sweep_for_ever())
    others = [await host.connect() for _ in range(280)]
    for each in others:
        each.writer.write(frame(bytes(60_000))[:59_000])
    await until(lambda: memory.used > memory.budget * 9 // 10)
    good = await host.connect()
    good.send(bytes(200_000))
    assert await good.answer() == bytes(200_000)
    assert any(each.session.closed for each in others)
    sweeping.cancel()


async def test_who_gets_memory_at_last_is_not_stuck_any_more(host):
    peer = await host.connect()
    memory = memory_of(host)
    memory.answers.take(memory.budget)
    peer.send(bytes(200_000))
    connection = next(iter(host.connections._open))
    await until(lambda: connection.wants_memory)
    connection.progress.stuck_since = 1.0
    memory.answers.take(-memory.budget)
    assert await peer.answer() == bytes(200_000)
    assert connection.progress.stuck_since is None


async def test_many_short_waits_for_one_frame_are_a_long_one(host):
    """Else who gets a little now and then would have nobody cut."""
    peer = await host.connect()
    memory = memory_of(host)
    memory.answers.take(memory.budget)
    peer.send(bytes(200_000))
    connection = next(iter(host.connections._open))
    await until(lambda: connection.wants_memory)
    first = connection._wanted
    first.since -= 1000
    memory.answers.take(-20_000)
    await until(lambda: connection._wanted not in (None, first))
    assert connection.held_bytes < 100_000
    assert asyncio.get_running_loop().time() - connection._wanted.since >= 1000
    memory.answers.take(-memory.answers.used)
    assert await peer.answer() == bytes(200_000)
    memory.answers.take(memory.budget)
    peer.send(bytes(200_000))
    await until(lambda: connection.wants_memory)
    assert asyncio.get_running_loop().time() - connection._wanted.since < 1000
    memory.answers.take(-memory.answers.used)


class StuckHolder:
    """Holds some bytes and gets on no more; it notes when it is cut, and how often it was asked."""

    moved_bytes = 0

    def __init__(self, held: int, cut: list[StuckHolder], *, wants: bool = False):
        self._held = held
        self.wants_memory = wants
        self.progress = Progress()
        self.asked = 0
        self._cut = cut

    @property
    def held_bytes(self) -> int:
        self.asked += 1
        return self._held

    def count_unsent(self) -> None:
        pass

    def abort(self, reason: str) -> None:
        del reason
        self.progress.stuck_since = None
        self._cut.append(self)


def test_who_holds_much_and_who_keeps_others_waiting_is_cut_first():
    cut: list[StuckHolder] = []
    expected = {
        StuckHolder(2 * MIB, cut, wants=True): 9,
        StuckHolder(100_000, cut): 8,
        StuckHolder(59_000, cut): 3,
        StuckHolder(59_000, cut): 4,
        StuckHolder(5_000, cut, wants=True): 1,
        StuckHolder(200_000, cut, wants=True): 2,
    }
    stuck = StuckHolders(expected)
    for holder, since in reversed(expected.items()):
        stuck.look(holder, since)
    stuck.look(StuckHolder(4_000, cut), 0)
    stuck.looked()
    stuck.cut(100 * MIB)
    assert cut == list(expected)


def test_of_very_many_that_are_stuck_each_has_its_place_by_the_look_at_it():
    """When all were looked at and when some are cut, the others cost nothing."""
    cut: list[StuckHolder] = []
    holders = [StuckHolder(50_000 + number % 7, cut) for number in range(10_000)]
    stuck = StuckHolders(holders)
    for since, holder in enumerate(reversed(holders)):
        stuck.look(holder, since)
    before = sum(holder.asked for holder in holders)
    stuck.looked()
    assert sum(holder.asked for holder in holders) == before
    stuck.cut(120_000)
    assert cut == holders[:-4:-1]
    assert sum(holder.asked for holder in holders) <= before + 3


def test_who_waits_for_memory_since_it_was_looked_at_is_cut_last():
    cut: list[StuckHolder] = []
    newcomer, other = StuckHolder(100_000, cut), StuckHolder(59_000, cut)
    stuck = StuckHolders([newcomer, other])
    for holder in (newcomer, other):
        stuck.look(holder, 1)
    stuck.looked()
    newcomer.wants_memory = True
    stuck.cut(1)
    assert cut == [other]
    stuck.cut(1)
    assert cut == [other, newcomer]


def test_nobody_is_cut_for_others_that_are_yet_to_be_looked_at():
    cut: list[StuckHolder] = []
    first, last = (StuckHolder(59_000, cut, wants=True) for _ in range(2))
    stuck = StuckHolders([first, last])

    def look_at(now: float, *holders: StuckHolder) -> None:
        for holder in holders:
            stuck.look(holder, now)

    first.moved_bytes = last.moved_bytes = 59_000
    look_at(1, first, last)
    last.moved_bytes += 9_000
    first.progress.may_go_on()
    look_at(2, first, last)
    stuck.looked()
    look_at(3, last)
    stuck.cut(1)
    assert cut == []
    look_at(3, first)
    stuck.looked()
    stuck.cut(1)
    assert cut == [first], "who got on last is cut last"


def test_no_more_are_cut_than_hold_what_is_wanted():
    cut: list[StuckHolder] = []
    holders = [StuckHolder(50_000, cut) for _ in range(100)]
    stuck = StuckHolders(holders)
    for since, holder in enumerate(holders):
        stuck.look(holder, since)
    stuck.looked()
    stuck.cut(120_000)
    assert len(cut) == 3
    stuck.cut(100 * MIB)
    assert len(cut) == 3 + progress._CUT_TOGETHER, "the next ones are cut the next time"
