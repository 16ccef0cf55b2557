"""Goal: what the broker keeps for consumers (committed offsets, cursors, stored offsets) never
points beyond what is safe, over power cuts.

Method: consumers of the three protocols read and acknowledge at once what writers write, flushes
take long, and the power is cut. Some consumers outlive that, others begin anew where the broker
says that they were. A position beyond what survived would have them leave out what is written
there next; so every consumer must have read each message that is there in the end, and no other.

The database is as new as it can be after a simulated power cut, which is the worst case here.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from crash_run import PARTITIONS, PROTOCOLS, CrashRun
from faulty_broker import FaultyBroker
from histories import Event, Place, parse
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.identifiers import Consumer as IggyConsumer
from penstock.iggy.wire.identifiers import ConsumerKind, Identifier
from penstock.pulsar.wire import pulsar_api_pb2 as pulsar_api
from stand import Stand
from wire_clients import IggyWire, PulsarWire, pulsar_request

CLIENT = Path(__file__).parents[1] / "support" / "positions_client.py"
TOPIC = "positions"
OUTLIVES, ANEW = "outlives", "anew"
READS_MIN = 100
PAUSE_SECONDS = 0.1
"""Writers are slow enough for consumers to be at the end."""
SLOW_FLUSH_MS = 300
CATCH_UP_SECONDS = 120


class Consumers:
    """A consumer of each protocol in each of the two groups, in processes of their own."""

    def __init__(self, broker: FaultyBroker) -> None:
        self._broker = broker
        self._processes: dict[tuple[str, str], subprocess.Popen[bytes]] = {}

    def start(self, group: str) -> None:
        for protocol in PROTOCOLS:
            address = getattr(self._broker, protocol).removeprefix("pulsar://")
            words = [protocol, address, TOPIC, str(PARTITIONS), group]
            with self._file(protocol, group).open("ab") as output:
                self._processes[protocol, group] = subprocess.Popen(
                    [sys.executable, str(CLIENT), *words],
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                )

    def kill(self, group: str) -> None:
        for (_, other), process in self._processes.items():
            if other == group:
                process.kill()
                process.wait()

    def reads(self, protocol: str, group: str) -> list[Event]:
        return parse(self._file(protocol, group).read_text())

    def places(self, protocol: str, group: str) -> dict[Place, set[str]]:
        found: dict[Place, set[str]] = {}
        for event in self.reads(protocol, group):
            assert event.place is not None
            found.setdefault(event.place, set()).add(event.value)
        return found

    def wait_for_more(self, count: int) -> None:
        wanted = {each: len(self.reads(*each)) + count for each in self._processes}
        self._wait(lambda each: len(self.reads(*each)) >= wanted[each])

    def wait_for_all(self, truth: dict[Place, set[str]]) -> None:
        # Who leaves something out never gets there, which is for the test to find.
        with contextlib.suppress(AssertionError):
            self._wait(lambda each: truth.keys() <= self.places(*each).keys())

    def _wait(self, is_so: Callable[[tuple[str, str]], bool]) -> None:
        deadline = time.monotonic() + CATCH_UP_SECONDS
        for each in self._processes:
            while not is_so(each):
                assert time.monotonic() < deadline, f"{each} does not get on"
                time.sleep(0.1)

    def _file(self, protocol: str, group: str) -> Path:
        return self._broker.folder / f"positions-{protocol}-{group}.txt"


@contextlib.contextmanager
def consuming(broker: FaultyBroker) -> Iterator[Consumers]:
    consumers = Consumers(broker)
    try:
        consumers.start(OUTLIVES)
        consumers.start(ANEW)
        yield consumers
    finally:
        consumers.kill(OUTLIVES)
        consumers.kill(ANEW)


def kafka_positions(broker: FaultyBroker, group: str) -> list[tuple[int, int]]:
    """Each partition's committed offset and end."""
    consumer = Consumer({"bootstrap.servers": broker.kafka, "group.id": group})
    places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    committed = [place.offset for place in consumer.committed(places, timeout=30)]
    ends = [consumer.get_watermark_offsets(place, timeout=30)[1] for place in places]
    consumer.close()
    return list(zip(committed, ends, strict=True))


def pulsar_positions(broker: FaultyBroker, group: str) -> list[tuple[int, int]]:
    """Each partition's last acknowledged entry and last entry."""
    found = []
    for partition in range(PARTITIONS):
        client = PulsarWire(broker.pulsar, TOPIC)
        subscribe = pulsar_request(
            "SUBSCRIBE",
            topic=f"{TOPIC}-partition-{partition}",
            subscription=group,
            consumer_id=1,
            subType=pulsar_api.CommandSubscribe.Shared,
            request_id=2,
        )
        client.ask(subscribe, "SUCCESS")
        asked = pulsar_request("GET_LAST_MESSAGE_ID", consumer_id=1, request_id=3)
        answer = client.ask(asked, "GET_LAST_MESSAGE_ID_RESPONSE").getLastMessageIdResponse
        acknowledged = answer.consumer_mark_delete_position.entryId
        found.append((_signed(acknowledged), _signed(answer.last_message_id.entryId)))
        client.close()
    return found


def _signed(entry_id: int) -> int:
    return -1 if entry_id == 2**64 - 1 else entry_id


def iggy_positions(broker: FaultyBroker, group: str) -> list[tuple[int, int]]:
    """Each partition's stored offset and last offset."""
    found = []
    client = IggyWire(broker.iggy, TOPIC)
    consumer = IggyConsumer(ConsumerKind.CONSUMER, Identifier(group))
    for partition in range(PARTITIONS):
        place = (Identifier("default"), Identifier(TOPIC), partition)
        asked = requests.GetConsumerOffset(consumer, *place)
        body = client.ask(Command.GET_CONSUMER_OFFSET, bytes(asked.encode()))
        if body:
            stored = replies.ConsumerOffset.decode(body)
            found.append((stored.stored_offset, stored.current_offset))
    client.close()
    return found


def cut_power(stand: Stand, cuts: int, seed: int) -> None:
    chance = random.Random(seed)
    broker = FaultyBroker(stand.fresh_folder())
    stand.add(broker)
    stand.allow("recovered|recovery|cut off|torn")
    run = CrashRun(broker, TOPIC, PAUSE_SECONDS)
    with consuming(broker) as consumers:
        for _ in range(cuts):
            with run.clients("write"):
                run.wait_for("ok", READS_MIN)
                consumers.wait_for_more(READS_MIN)
                with broker.disk.slow(SLOW_FLUSH_MS, "fdatasync"):
                    time.sleep(chance.uniform(0.5, 1))
                    broker.power_cut()
                    run.kill_writers()
                    consumers.kill(ANEW)
                    broker.start()
            for group in (OUTLIVES, ANEW):
                for positions in (kafka_positions, pulsar_positions, iggy_positions):
                    beyond = [each for each in positions(broker, group) if each[0] > each[1]]
                    assert not beyond, f"{positions.__name__} of {group}: {beyond}, seed {seed}"
            consumers.start(ANEW)
        with run.clients("write"):
            run.wait_for("ok", READS_MIN)
            run.stop_writers()
        truth = {event.place: {event.value} for event in run.history().truths["kafka"]}
        consumers.wait_for_all(truth)
        for protocol in PROTOCOLS:
            for group in (OUTLIVES, ANEW):
                assert consumers.places(protocol, group) == truth, (
                    f"{protocol} {group}, seed {seed}"
                )


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_positions_never_point_beyond_what_is_safe(stand: Stand) -> None:
    cut_power(stand, cuts=5, seed=time.time_ns())
