"""Goal: a flood of connections takes no more files than it may, and passes."""

from __future__ import annotations

import asyncio
import errno
import socket
from itertools import count, pairwise

import pytest

from patience import until
from penstock import limits
from penstock.server import acceptor
from penstock.server.acceptor import ACCEPTED_INTO_A_CROWD, ACCEPTED_TOGETHER, Acceptor


class Counted(asyncio.Protocol):
    open = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Counted.open += 1


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture(autouse=True)
def _nobody_yet():
    Counted.open = 0


class Scripted:
    """A listening socket of which `accept` can be told to fail, and is counted."""

    def __init__(self, listening: socket.socket, *failures: OSError) -> None:
        self._listening = listening
        self.failures = list(failures)
        self.accepted = 0
        self.tried = 0

    def accept(self):
        self.tried += 1
        if self.failures:
            raise self.failures.pop(0)
        made = self._listening.accept()
        self.accepted += 1
        return made

    def __getattr__(self, name):
        return getattr(self._listening, name)


def connected(listening, count):
    return [socket.create_connection(listening.getsockname()) for _ in range(count)]


async def most_in_a_turn(listening, connections, *, crowded=False):
    """Return how many connections at most a turn takes, until it has taken so many."""
    clients = connected(listening, connections)
    scripted = Scripted(listening)
    taking = Acceptor(scripted, Counted, lambda: crowded)
    taken = [0]
    while scripted.accepted < connections:
        await asyncio.sleep(0)
        taken.append(scripted.accepted)
        assert scripted.accepted - Counted.open <= ACCEPTED_TOGETHER, "few are under way"
    await until(lambda: Counted.open == connections)
    taking.close()
    for client in clients:
        client.close()
    return max(later - earlier for earlier, later in pairwise(taken))


async def test_a_turn_takes_a_few_only(listening, monkeypatch):
    monkeypatch.setattr(acceptor, "perf_counter", lambda: 0.0)
    assert await most_in_a_turn(listening, 3 * ACCEPTED_TOGETHER) == ACCEPTED_TOGETHER


async def test_few_are_taken_while_many_wait_for_their_turns(listening):
    """What those say who are there comes first."""
    assert await most_in_a_turn(listening, 20, crowded=True) == ACCEPTED_INTO_A_CROWD


async def test_a_turn_takes_fewer_where_that_takes_long(listening, monkeypatch):
    """Those who are there would wait behind more and more who come."""
    quarters = count()
    share = limits.TURN_MICROSECONDS / 1_000_000
    monkeypatch.setattr(acceptor, "perf_counter", lambda: next(quarters) * share / 4)
    assert await most_in_a_turn(listening, 20) == 4


async def test_no_file_left_is_waited_for_without_trying_all_the_time(
    listening, monkeypatch, caplog
):
    monkeypatch.setattr(acceptor, "RETRY_SECONDS", 0.2)
    scripted = Scripted(listening, *[OSError(errno.EMFILE, "Too many open files")] * 2)
    taking = Acceptor(scripted, Counted, lambda: False)
    clients = connected(listening, 1)
    await until(lambda: Counted.open == 1)
    assert scripted.tried <= 4, "two that failed, one that did not, and one that found none"
    assert caplog.text.count("Too many open files") == 2
    taking.close()
    for client in clients:
        client.close()


async def test_nothing_is_taken_after_the_close(listening, monkeypatch):
    monkeypatch.setattr(acceptor, "RETRY_SECONDS", 0.05)
    scripted = Scripted(listening, OSError(errno.ENFILE, "Too many open files in system"))
    taking = Acceptor(scripted, Counted, lambda: False)
    clients = connected(listening, 1)
    await until(lambda: scripted.tried == 1)
    taking.close()
    await asyncio.sleep(0.1)
    assert scripted.tried == 1
    for client in clients:
        client.close()
