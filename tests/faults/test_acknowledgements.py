"""Goal: acknowledgements in the worst order cost little: time that does not grow with what is open,
memory that follows the offsets, and nobody else's time.

Method: a consumer over a socket is pushed messages of one entry each, acknowledges every one alone,
in random order and without waiting, and what the broker spent on it is held against as many PINGs.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from typing import BinaryIO, Self

import pytest

from broker_process import BrokerProcess
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import entry
from stand import MIB, Stand
from wire_clients import PULSAR_CONNECT, PulsarWire, pulsar_request

COSTS_OF_PINGS = 1.2
"""What an acknowledgement may cost, in PINGs: about 0.6, and 1.6 to 2 where it is taken alone."""
PARTS = 5
"""Of which the median counts: what else a broker does once in a while is as much as one of them."""
MEDIAN_SECONDS = 0.02
BUSY_MEDIAN_SECONDS = 0.5
"""What a PING may take on a machine that others use too; what is looked for takes seconds."""
EXCLUSIVE, SHARED = api.CommandSubscribe.Exclusive, api.CommandSubscribe.Shared


class Peer:
    """A Pulsar client of which requests are not waited for."""

    def __init__(self, stand: Stand, broker: BrokerProcess) -> None:
        self.socket = stand.connect(broker, "pulsar")
        self.socket.settimeout(600)
        self._file: BinaryIO = self.socket.makefile("rb", buffering=MIB)
        self._stand = stand
        self.socket.sendall(PULSAR_CONNECT)
        self.hear()

    def send(self, data: bytes) -> None:
        """Send in the background, for the broker stops to read while answers are not taken."""
        self._stand.flood(self.socket, data)

    def hear(self) -> api.BaseCommand:
        """Return the next command."""
        size = self._file.read(4)
        assert size, "the broker closed the connection"
        frame = self._file.read(int.from_bytes(size))
        return api.BaseCommand.FromString(frame[4 : 4 + int.from_bytes(frame[:4])])

    def hear_until(self, kind: int) -> None:
        while self.hear().type != kind:
            pass

    def publish(self, count: int) -> None:
        self.socket.sendall(pulsar_request("PRODUCER", topic="t", producer_id=1, request_id=1))
        self.hear()
        # A number above those that are looked at: the same frame is sent again and again.
        sent = {"producer_id": 1, "sequence_id": 1 << 60, "num_messages": 1}
        self.send(pulsar_request("SEND", entry(b"message"), **sent) * count)
        for _ in range(count):
            self.hear_until(api.BaseCommand.SEND_RECEIPT)

    def consume(self, count: int, kind: int) -> list[api.MessageIdData]:
        asked = {"topic": "t", "subscription": "sub", "consumer_id": 1, "request_id": 2}
        first = api.CommandSubscribe.Earliest
        self.socket.sendall(
            pulsar_request("SUBSCRIBE", subType=kind, initialPosition=first, **asked)
        )
        self.hear()
        self.socket.sendall(pulsar_request("FLOW", consumer_id=1, messagePermits=count))
        found: list[api.MessageIdData] = []
        while len(found) < count:
            command = self.hear()
            if command.type == api.BaseCommand.MESSAGE:
                found.append(command.message.message_id)
            elif command.type == api.BaseCommand.PING:
                self.socket.sendall(pulsar_request("PONG"))
        return found

    def ping(self, count: int) -> None:
        self.send(pulsar_request("PING") * count)
        for _ in range(count):
            self.hear_until(api.BaseCommand.PONG)

    def acknowledge(self, ids: list[api.MessageIdData]) -> None:
        """Acknowledge each alone, and return when all of it is stored."""
        individual = {"consumer_id": 1, "ack_type": api.CommandAck.Individual}
        frames = []
        for number, each in enumerate(ids):
            if number % 10_000 == 0:  # So many take a while, and whoever is silent is cut off.
                self.socket.sendall(pulsar_request("PONG"))
            frames.append(pulsar_request("ACK", message_id=[each], **individual))
        frames.append(pulsar_request("ACK", message_id=ids[:1], request_id=9, **individual))
        self.send(b"".join(frames))
        self.hear_until(api.BaseCommand.ACK_RESPONSE)


@pytest.mark.parametrize(
    ("count", "kind", "median_seconds"),
    [
        (20_000, EXCLUSIVE, BUSY_MEDIAN_SECONDS),
        (20_000, SHARED, BUSY_MEDIAN_SECONDS),
        pytest.param(
            900_000,
            EXCLUSIVE,
            MEDIAN_SECONDS,
            marks=[pytest.mark.soak, pytest.mark.timeout(1800)],
        ),
    ],
)
def test_single_acknowledgements_in_random_order(
    stand: Stand, count: int, kind: int, median_seconds: float
) -> None:
    broker = stand.start()
    peer = Peer(stand, broker)
    peer.publish(count)
    ids = peer.consume(count, kind)
    random.Random(count).shuffle(ids)
    # The last half of the offsets stays: the worst is what is open everywhere.
    taken = [each for each in ids if each.entryId % 2] + ids[:1]
    size = -(-len(taken) // PARTS)
    costs: list[float] = []
    stand.watch.reset()
    with _Pinger(broker) as pinger:
        for part in (taken[at : at + size] for at in range(0, len(taken), size)):
            pings = _cpu(stand, lambda part=part: peer.ping(len(part)))
            costs.append(_cpu(stand, lambda part=part: peer.acknowledge(part)) / pings)
    assert statistics.median(costs) < COSTS_OF_PINGS, f"in PINGs: {costs}"
    assert stand.watch.grown_mib * MIB < 2 * count + 8 * MIB
    print(f"{statistics.median(costs):.2f} PINGs each")  # noqa: T201
    print(f"{stand.watch.grown_mib:.1f} MiB more, PING {pinger.report()}")  # noqa: T201
    assert pinger.median < median_seconds


def _cpu(stand: Stand, work) -> float:
    stand.watch.sample()
    before = stand.watch.cpu_seconds
    work()
    stand.watch.sample()
    return stand.watch.cpu_seconds - before


class _Pinger:
    """Somebody else's connection, and how long its PINGs take."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._client = PulsarWire(broker.pulsar, "other")
        self._seconds: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._client.close()

    @property
    def median(self) -> float:
        return sorted(self._seconds)[len(self._seconds) // 2]

    def report(self) -> str:
        late = sorted(self._seconds)[-1 - len(self._seconds) // 100]
        return (
            f"{1e3 * self.median:.1f} ms, p99 {1e3 * late:.1f}, max {1e3 * max(self._seconds):.1f}"
        )

    def _run(self) -> None:
        while not self._ended.wait(0.002):
            began = time.monotonic()
            self._client.ping()
            self._seconds.append(time.monotonic() - began)
        self._seconds = self._seconds or [0.0]
