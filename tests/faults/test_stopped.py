"""Goal: a broker that was stopped for a while, as by SIGSTOP or on a machine that slept, takes no
client for dead that it could not hear.

Method: the clients' signs of life, and the rest of requests, come late or wait in the sockets when
it goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from broker_process import BrokerProcess
from group_members import HEARTBEAT, GroupMembers
from stand import Stand
from wire_clients import connect, kafka_request, receive_exactly

SESSION_SECONDS = 6
STOPPED_SECONDS = 12
"""More than a session, and than a request may take to arrive."""
MEMBERS = 200
BEFORE_SECONDS = 2
"""The sessions are not as good as over when the broker stops."""
PING = kafka_request("ApiVersions", 0)


@contextlib.contextmanager
def stopped(broker: BrokerProcess) -> Iterator[None]:
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


@pytest.mark.soak
def test_a_broker_that_was_stopped_hears_its_clients_first(stand: Stand) -> None:
    """Fault: SIGSTOP for twice as long as sessions last, while requests are half there.

    Bar: every member is still one, though its heartbeat comes a second later, and every request
    that is completed then is answered.
    """
    stand.allow("the event loop was held up")
    broker = stand.start()
    members = GroupMembers(broker.kafka, "g", MEMBERS, SESSION_SECONDS)
    members.join()
    members.sync()
    halves = [connect(broker.kafka) for _ in range(MEMBERS)]
    for half in halves:
        half.sendall(PING[:10])
    time.sleep(BEFORE_SECONDS)
    with stopped(broker):
        time.sleep(STOPPED_SECONDS)
    time.sleep(1)
    members.ask(members.heartbeats())
    members.hear(*HEARTBEAT)
    assert set(members.errors) == {0}
    for half in halves:
        half.sendall(PING[10:])
        assert receive_exactly(half, 4)
        half.close()
    members.close()
