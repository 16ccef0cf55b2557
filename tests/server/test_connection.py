"""A connection over real sockets with a session that the test scripts: order, pressure, the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from penstock import limits
from penstock.memory import Memory
from penstock.server.connections import Connections
from penstock.server.sending import Sender
from penstock.session import Deferred, PeerError
from scripted_host import Host, frame, until

ONLY_AWAITED = pytest.mark.parametrize("host", [False], indirect=True)
"""What is deferred ends by itself and is never cancelled."""


@pytest.fixture(params=[False, True], ids=["awaited", "deferred"])
async def host(request):
    host = Host(request.param)
    await host.start()
    yield host
    host.server.close()
    await host.connections.cut()


def arrived(intake):
    """Bytes of a frame that is not whole yet."""
    return intake._filled if intake._frame is not None else len(intake._rest)


def connection_of(host):
    """The server's side of the only connection."""
    (connection,) = host.connections._open
    return connection


async def test_answers_come_in_the_order_of_requests_while_awaitables_run_side_by_side(host):
    peer = await host.connect()
    peer.send(b"wait 1", b"two", b"wait 3", b"silent", b"five")
    await until(lambda: len(peer.session.received) == 5)
    peer.session.waits[b"wait 3"].set_result([b"\0\0\0\1", b"3"])
    peer.session.waits[b"wait 1"].set_result([b"\0\0\0\1", b"1"])
    assert [await peer.answer() for _ in range(4)] == [b"1", b"two", b"3", b"five"]


async def test_what_a_session_sends_unasked_comes_between_the_answers_of_one_turn(host):
    peer = await host.connect()
    session, ready = peer.session, asyncio.get_running_loop().create_future()
    asked = []

    def answer(asking):
        asked.append(bytes(asking))

        def make(_failure):
            session.transport.write([frame(b"unasked")])
            return [asking]

        return Deferred(ready, make)

    session._answer = answer
    peer.send(b"1", b"2")
    await until(lambda: len(asked) == 2)
    ready.set_result(None)
    answers = [await peer.answer() for _ in range(4)]
    assert answers == [b"unasked", b"1", b"unasked", b"2"]


async def test_frames_arrive_whole_however_they_are_cut(host):
    peer = await host.connect()
    texts = [b"a", b"", b"b" * 70_000, b"c" * 3_000_000, b"d"]
    stream = b"".join(frame(text) for text in texts)
    step = 9_973
    for start in range(0, len(stream), step):
        peer.writer.write(stream[start : start + step])
        await asyncio.sleep(0)
    assert [await peer.answer() for _ in texts] == texts


async def test_single_bytes_make_a_frame(host):
    peer = await host.connect()
    intake = connection_of(host)._intake
    for count, byte in enumerate(frame(b"slow")):
        await until(lambda count=count: arrived(intake) == count)  # The one before came alone.
        peer.writer.write(bytes([byte]))
        await peer.writer.drain()
    assert await peer.answer() == b"slow"


async def test_frames_keep_their_memory_after_the_next_ones_arrived(host):
    peer = await host.connect()
    kept: list[memoryview] = []
    receive = peer.session.receive
    peer.session.receive = lambda frame: (kept.append(frame), receive(frame))[1]  # type: ignore[method-assign]
    for text in (b"first", b"other", b"third"):
        peer.send(text)
        assert await peer.answer() == text
    assert [bytes(frame[4:]) for frame in kept] == [b"first", b"other", b"third"]
    assert not any(frame.readonly for frame in kept)


async def test_a_connection_with_too_many_requests_in_flight_is_not_read(host, monkeypatch):
    monkeypatch.setattr(limits, "REQUESTS_IN_FLIGHT", 3)
    peer = await host.connect()
    texts = [b"wait %d" % number for number in range(10)]
    peer.send(*texts)
    other = await host.connect()
    other.send(b"served meanwhile")
    assert await other.answer() == b"served meanwhile"
    assert peer.session.received == texts[:3]
    for text in texts:
        await until(lambda text=text: text in peer.session.waits)
        peer.session.waits[text].set_result([frame(text)])
        assert await peer.answer() == text


async def test_a_full_connection_reads_on_once_for_all_answers_of_a_turn(host, monkeypatch):
    monkeypatch.setattr("penstock.server.turns._SHARE_SECONDS", 60)
    monkeypatch.setattr(limits, "REQUESTS_IN_FLIGHT", 50)
    peer = await host.connect()
    texts = [b"wait %d" % number for number in range(100)]
    peer.send(*texts)
    await until(lambda: len(peer.session.received) == 50)
    for text in texts[:50]:
        peer.session.waits[text].set_result([frame(text)])
    await until(lambda: len(peer.session.received) > 50)
    assert peer.session.received == texts
    for text in texts[50:]:
        peer.session.waits[text].set_result([frame(text)])
    assert [await peer.answer() for _ in texts] == texts


async def test_a_client_that_asks_once_is_served_between_the_turns_of_one_that_asks_much(host):
    greedy, polite = await host.connect(), await host.connect()
    counts: list[int] = []
    receive = polite.session.receive

    def counting(frame):
        counts.append(len(greedy.session.received))
        return receive(frame)

    polite.session.receive = counting
    texts = [b"%d" % number for number in range(5_000)]
    greedy.send(*texts)
    for _ in range(5):
        polite.send(b"once")
        assert await polite.answer() == b"once"
    assert [await greedy.answer() for _ in texts] == texts
    # Reading and answering take a pass each, and each pass may begin one turn for the other.
    assert counts[0] <= 4 * limits.TURN_STEPS
    assert counts[-1] < len(texts)


async def test_what_is_left_over_when_the_client_closes_is_not_carried_out(host):
    peer = await host.connect()
    peer.send(*[b"x"] * 5_000, b"quit", *[b"never taken"] * 5_000)
    assert [await peer.answer() for _ in range(5_000)] == [b"x"] * 5_000
    assert await peer.answer() == b"quit"
    assert await peer.reader.read() == b""
    assert peer.session.received[-1] == b"quit"


async def test_a_client_that_does_not_read_is_not_read_either(host):
    peer = await host.connect()
    transport = peer.session.transport
    for _ in range(100):
        transport.write([bytes(1 << 20)])
        waiting = asyncio.ensure_future(transport.writable())
        await asyncio.sleep(0)
        if not waiting.done():
            break
    assert not waiting.done(), "CPython 3.13.0 and 3.13.1 do not say so: gh-127655"
    peer.send(b"asked while stalled")
    await peer.writer.drain()
    assert not connection_of(host)._transport.is_reading()
    assert peer.session.received == []
    while not waiting.done():
        await peer.reader.read(1 << 20)
    await until(lambda: peer.session.received == [b"asked while stalled"])


async def test_a_client_that_never_reads_is_cut(host, caplog):
    caplog.set_level(logging.INFO)
    peer = await host.connect()
    peer.send(b"hello")
    await until(lambda: bool(peer.session.received))
    for _ in range(50):
        peer.session.transport.write([bytes(1 << 20)])
    await until(lambda: connection_of(host).stalled_since is not None)
    now = asyncio.get_running_loop().time()
    host.connections.sweep(now + limits.WRITE_STALL_SECONDS - 1)
    assert peer.session.closed == 0
    host.connections.sweep(now + limits.WRITE_STALL_SECONDS + 1)
    await until(lambda: peer.session.closed == 1)
    assert "does not read its answers" in caplog.text
    with pytest.raises(ConnectionResetError):
        await peer.session.transport.writable()


async def test_a_silent_client_is_cut_before_and_after_its_first_request(host):
    silent, idle = await host.connect(), await host.connect()
    idle.send(b"once")
    await idle.answer()
    now = asyncio.get_running_loop().time()
    host.connections.sweep(now + limits.FRAME_SECONDS + 1)
    await until(lambda: silent.session.closed == 1)
    assert idle.session.closed == 0
    host.connections.sweep(now + limits.IDLE_SECONDS + 1)
    await until(lambda: idle.session.closed == 1)


async def test_time_in_which_nobody_was_heard_is_added_to_every_deadline(host):
    silent, idle = await host.connect(), await host.connect()
    idle.send(b"once")
    await idle.answer()
    now, stopped = asyncio.get_running_loop().time(), 3 * limits.IDLE_SECONDS
    for _ in host.connections.put_off_in_steps(stopped):
        pass
    host.connections.sweep(now + stopped + limits.FRAME_SECONDS - 1)
    assert silent.session.closed == 0
    host.connections.sweep(now + stopped + limits.FRAME_SECONDS + 1)
    await until(lambda: silent.session.closed == 1)
    host.connections.sweep(now + stopped + limits.IDLE_SECONDS - 1)
    assert idle.session.closed == 0
    host.connections.sweep(now + stopped + limits.IDLE_SECONDS + 1)
    await until(lambda: idle.session.closed == 1)


async def test_a_client_that_waits_for_an_answer_is_not_idle(host):
    peer = await host.connect()
    peer.send(b"wait")
    await until(lambda: b"wait" in peer.session.waits)
    host.connections.sweep(asyncio.get_running_loop().time() + limits.IDLE_SECONDS + 1)
    peer.session.waits[b"wait"].set_result([frame(b"at last")])
    assert await peer.answer() == b"at last"


async def test_close_lets_the_answers_out_first(host):
    peer = await host.connect()
    peer.send(b"wait", b"quit", b"never taken")
    await until(lambda: b"quit" in peer.session.received)
    peer.session.waits[b"wait"].set_result([frame(b"late")])
    assert await peer.answer() == b"late"
    assert await peer.answer() == b"quit"
    assert await peer.reader.read() == b""
    assert peer.session.received == [b"wait", b"quit"]


@pytest.mark.parametrize(
    ("text", "level", "said"),
    [
        (b"bug", logging.ERROR, "ZeroDivisionError"),
        (b"refuse", logging.WARNING, "scripted refusal"),
    ],
)
async def test_a_failing_session_costs_only_its_own_connection(host, caplog, text, level, said):
    peer, other = await host.connect(), await host.connect()
    peer.send(b"before", text)
    assert await peer.answer() == b"before"
    assert await peer.reader.read() == b""
    assert peer.session.closed == 1
    assert [record.levelno for record in caplog.records if record.levelno > logging.INFO] == [level]
    assert said in caplog.text
    other.send(b"fine")
    assert await other.answer() == b"fine"


@pytest.mark.parametrize("error", [ZeroDivisionError("scripted"), PeerError("scripted")])
async def test_a_failing_awaitable_closes_after_the_answers_before_it(host, caplog, error):
    peer = await host.connect()
    peer.send(b"wait a", b"wait b", b"c")
    await until(lambda: len(peer.session.received) == 3)
    peer.session.waits[b"wait b"].set_exception(error)
    await until(lambda: connection_of(host).closing_since is not None)
    peer.session.waits[b"wait a"].set_result([frame(b"a")])
    assert await peer.answer() == b"a"
    await until(lambda: peer.session.closed == 1)
    assert "scripted" in caplog.text


async def test_a_lying_length_takes_no_memory(host):
    peer = await host.connect()
    begun = (limits.FRAME_KEPT_BYTES - 4).to_bytes(4) + b"not that much"
    peer.writer.write(begun)
    await peer.writer.drain()
    connection = connection_of(host)
    await until(lambda: connection._intake._frame is not None)
    assert connection.held_bytes == host.connections.memory.receiving.used == len(begun)


async def test_a_length_over_the_limit_closes(host, caplog):
    peer = await host.connect()
    peer.writer.write(b"\x7f\xff\xff\xff")
    assert await peer.reader.read() == b""
    assert "over the limit" in caplog.text


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "this is HTTP"),
        (bytes.fromhex("160301020001000200") + bytes(20), "this is TLS"),
        (
            b"\xff" + bytes.fromhex("0000400000003c080212380a") + bytes(20),
            "over the limit",
        ),
    ],
)
async def test_a_foreign_client_is_named_in_the_log(host, caplog, sent, said):
    peer = await host.connect()
    peer.writer.write(sent)
    assert await peer.reader.read() == b""
    assert said in caplog.text


@ONLY_AWAITED
async def test_a_client_that_leaves_ends_its_session_once_and_its_requests_run_on(host):
    peer = await host.connect()
    peer.send(b"wait")
    await until(lambda: b"wait" in peer.session.waits)
    peer.writer.close()
    await until(lambda: peer.session.closed == 1)
    waiting = peer.session.waits[b"wait"]
    assert not waiting.cancelled()
    host.connections.sweep(asyncio.get_running_loop().time() + limits.CLOSING_SECONDS + 1)
    await until(waiting.cancelled)
    assert len(host.connections) == 0


async def test_one_connection_too_many_is_closed(monkeypatch):
    host = Host()
    host.connections = Connections("", Memory(), connections_max=1)
    await host.start()
    first = await host.connect()
    reader, _ = await asyncio.open_connection("127.0.0.1", host.port)
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
    first.send(b"fine")
    assert await first.answer() == b"fine"
    host.server.close()
    await host.connections.cut()


@ONLY_AWAITED
async def test_finish_answers_what_was_asked_and_cut_ends_the_rest(host):
    prompt, stuck = await host.connect(), await host.connect()
    prompt.send(b"wait")
    stuck.send(b"wait")
    await until(lambda: all(session.waits for session in host.sessions))
    asyncio.get_running_loop().call_later(
        0.01, prompt.session.waits[b"wait"].set_result, [frame(b"done")]
    )
    assert not await host.connections.finish(0.1)
    assert await prompt.answer() == b"done"
    assert prompt.session.closed == 1
    await host.connections.cut()
    assert stuck.session.closed == 1
    assert stuck.session.waits[b"wait"].cancelled()


async def test_the_advertised_host_replaces_the_one_connected_to(host):
    host.connections.advertised_host = "broker.example"
    peer = await host.connect()
    assert peer.session.transport.local_address == ("broker.example", host.port)
    assert peer.session.transport.peer.startswith("127.0.0.1:")


async def test_answers_of_several_turns_leave_together(host, monkeypatch):
    monkeypatch.setattr(limits, "TURN_STEPS", 8)
    monkeypatch.setattr("penstock.server.connection._COLLECTED_SECONDS", 60)
    sends = []
    send = Sender.send
    monkeypatch.setattr(Sender, "send", lambda *given: (sends.append(None), send(*given)))
    peer = await host.connect()
    texts = [b"%d" % number for number in range(200)]
    peer.send(*texts)
    assert [await peer.answer() for _ in texts] == texts
    assert len(sends) <= 3  # Not one for each of 25 turns.
