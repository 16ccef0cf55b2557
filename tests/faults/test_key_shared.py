"""Goal: however many keys, consumers and messages of a Key_Shared subscription, and whatever they
do at once, they take nobody else's time.

Method: one connection has all of it, and whoever has nothing to do with it asks a thing at a time.
That no turn of the event loop was long, which the stand looks for at the end, is the sharper bar.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import entry
from stand import Stand
from wire_clients import PULSAR_CONNECT, pulsar_request

MEDIAN_SECONDS = 0.05
"""What a neighbour may wait on a machine that others use too; what is looked for takes seconds."""
SOAK = [pytest.mark.soak, pytest.mark.timeout(900)]
KEY_SHARED, MESSAGE = api.CommandSubscribe.Key_Shared, api.BaseCommand.MESSAGE
PONG = pulsar_request("PONG")


class Sharers:
    """Consumers of one Key_Shared subscription over one connection, that takes what is sent."""

    def __init__(self, stand: Stand, broker: BrokerProcess) -> None:
        self._stand = stand
        self.socket = stand.connect(broker, "pulsar")
        self.socket.settimeout(600)
        self._file = self.socket.makefile("rb", buffering=1 << 20)
        self._heard: Counter[int] = Counter()
        self._publishes = False
        """Whether messages are sent in the background, among which nothing else may go out."""
        self.socket.sendall(PULSAR_CONNECT)
        self.hear_until(api.BaseCommand.CONNECTED)

    def hear_until(self, kind: int, count: int = 1) -> None:
        """Return when so many commands of a kind came since they were last waited for."""
        while self._heard[kind] < count:
            size = self._file.read(4)
            assert size, "the broker closed the connection"
            frame = self._file.read(int.from_bytes(size))
            heard = api.BaseCommand.FromString(frame[4 : 4 + int.from_bytes(frame[:4])]).type
            self._heard[heard] += 1
            if heard == api.BaseCommand.PING and not self._publishes:
                self.socket.sendall(PONG)
        self._heard[kind] -= count

    def publish(self, count: int, keys: int, **metadata: int) -> None:
        """Publish so many messages, of so many keys in turn."""
        self.socket.sendall(pulsar_request("PRODUCER", topic="t", producer_id=1, request_id=1))
        self.hear_until(api.BaseCommand.PRODUCER_SUCCESS)
        # A number above those that are looked at: deduplication is off.
        sent = {"producer_id": 1, "sequence_id": 1 << 60, "num_messages": 1}
        frames = b"".join(
            pulsar_request("SEND", entry(b"m", partition_key=f"key-{number}", **metadata), **sent)
            for number in range(keys)
        )
        self._publishes = True
        self._stand.flood(self.socket, frames + PONG, times=count // keys)
        self.hear_until(api.BaseCommand.SEND_RECEIPT, count)
        self._publishes = False
        self.socket.sendall(pulsar_request("CLOSE_PRODUCER", producer_id=1, request_id=2))
        self.hear_until(api.BaseCommand.SUCCESS)

    def join(self, first: int, count: int, permits: int) -> None:
        for number in range(first, first + count):
            asked = {"topic": "t", "subscription": "sub", "initialPosition": 1}
            ids = {"consumer_id": number, "request_id": number, "consumer_name": f"c{number}"}
            self.socket.sendall(pulsar_request("SUBSCRIBE", subType=KEY_SHARED, **asked, **ids))
            self.hear_until(api.BaseCommand.SUCCESS)
            self.socket.sendall(pulsar_request("FLOW", consumer_id=number, messagePermits=permits))

    def leave(self, first: int, count: int) -> None:
        self.socket.sendall(
            b"".join(
                pulsar_request("CLOSE_CONSUMER", consumer_id=number, request_id=number)
                for number in range(first, first + count)
            )
        )


def a_stuck_consumer(stand: Stand, broker: BrokerProcess, size: int) -> None:
    """One of two takes nothing, and messages of as many keys as there are lie behind it."""
    sharers = Sharers(stand, broker)
    sharers.publish(size, keys=min(size, 100_000))
    sharers.join(10, 1, permits=1)
    sharers.hear_until(MESSAGE)
    sharers.join(11, 1, permits=size)
    sharers.hear_until(MESSAGE, 1_000)
    time.sleep(1)


def many_who_come_and_go(stand: Stand, broker: BrokerProcess, size: int) -> None:
    """They join one after the other, each holds some, and all leave at once, two times."""
    for _ in range(2):
        sharers = Sharers(stand, broker)
        sharers.publish(10 * size, keys=min(10 * size, 10_000))
        sharers.join(10, size, permits=10)
        sharers.hear_until(MESSAGE, 5 * size)
        sharers.leave(10, size // 2)
        sharers.hear_until(api.BaseCommand.SUCCESS, size // 2)
        sharers.socket.close()


def many_given_back(stand: Stand, broker: BrokerProcess, size: int) -> None:
    """Four hold as many as they may, give them back, hold them again and leave."""
    sharers = Sharers(stand, broker)
    sharers.join(10, 4, permits=2 * size)
    sharers.publish(size, keys=min(size, 20_000))
    held = min(size, 120_000)
    sharers.hear_until(MESSAGE, held)
    for number in range(10, 14):
        asked = {"consumer_id": number}
        sharers.socket.sendall(pulsar_request("REDELIVER_UNACKNOWLEDGED_MESSAGES", **asked))
    sharers.hear_until(MESSAGE, held)
    sharers.join(20, 1, permits=2 * size)
    sharers.leave(10, 4)
    sharers.hear_until(MESSAGE, min(size, 50_000))


def many_due_at_once(stand: Stand, broker: BrokerProcess, size: int) -> None:
    """All are due in one tick."""
    sharers = Sharers(stand, broker)
    due = 1_000 * int(time.time() + 3 + size / 5_000)
    sharers.join(10, 4, permits=size)
    sharers.publish(size, keys=min(size, 1_000), deliver_at_time=due)
    sharers.hear_until(MESSAGE, size)


ATTACKS = [
    (a_stuck_consumer, 20_000, 1_000_000),
    (many_who_come_and_go, 150, 1_000),
    (many_given_back, 4_000, 200_000),
    (many_due_at_once, 4_000, 100_000),
]


@pytest.mark.parametrize(
    ("attack", "size"),
    [
        *((attack, little) for attack, little, _ in ATTACKS),
        *(pytest.param(attack, much, marks=SOAK) for attack, _, much in ATTACKS),
    ],
)
def test_who_shares_keys_takes_no_time_of_others(
    stand: Stand, attack: Callable[[Stand, BrokerProcess, int], None], size: int
) -> None:
    """Attack: many keys, consumers and messages at once.

    Bar: the median of what each neighbour waits stays small, and no turn of the loop is long.
    """
    broker = stand.start()
    with stand.probing(broker) as probes:
        with probes.attack():
            attack(stand, broker, size)
        during = probes.latencies("attack").of("ping", "pulsar")
        print(f"{attack.__name__} {size}: {during}, {stand.watch.peak_mib:.0f} MiB")  # noqa: T201
        assert during.p50 < MEDIAN_SECONDS, probes.report()
