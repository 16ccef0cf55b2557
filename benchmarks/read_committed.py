"""What it costs to read what is committed: the broker's CPU and the reader's time, as a part of
what they are without.

A topic is written in transactions, of one message or of a hundred, of which one in five aborts, by
some producers at a time. Kafka's readers fetch all of it with either isolation. Pulsar's always
read what is committed: they read a topic that was written so, and one that was not. What a reader
sends is made before, and what comes is only counted. The two kinds of reading take turns; each
ratio is of one pair, and of what it takes a message.

Of Pulsar's readings there are two ratios. The first is of a message that is delivered, which pays
for those that are left out. In the second, `of all written`, whoever hides nothing is sent what was
aborted too: so it compares what Kafka's does, but that the other topic has no markers to pass.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Producer

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.fetched import asking
from penstock.clients.pulsar.client import PulsarClient
from penstock.clients.pulsar.transactions import Coordinators
from penstock.demo.processes import running_broker
from penstock.kafka.wire import api, encode_request
from penstock.log.header import walk
from penstock.pulsar.wire import frames as pulsar
from penstock.pulsar.wire import pulsar_api_pb2 as pb
from penstock.pulsar.wire.message_ids import EARLIEST
from penstock.records.pulsar.entry import build_entry
from penstock.records.pulsar.metadata_pb2 import MessageMetadata
from request_cost import Peer, length_prefixed

FETCH: Final = api("Fetch")
FETCH_VERSION: Final = 12
FETCH_BYTES: Final = 1 << 20
ANSWER_SECONDS: Final = 60
VALUE: Final = bytes(1024)
WRITERS: Final = 4
ABORTS_OF: Final = 5
SIZES: Final = {1: 8000, 100: 160}
"""By messages of a transaction, how many transactions a topic has."""
DRAWN: Final = 2000


class Exchange(NamedTuple):
    """What a reader sends, and how many frames come back."""

    frames: bytes
    replies: int


class Reading(NamedTuple):
    """One reading of a topic from its beginning to its end."""

    exchanges: Sequence[Exchange]
    messages: int


class Compared(NamedTuple):
    """A reading of what is committed, what it is compared with, and who reads."""

    title: str
    committed: Reading
    other: Reading
    peer: Peer
    written: int = 0
    """How many messages there are with those that were aborted, where these are not sent."""


class Ratios(NamedTuple):
    """Of committed to other, pair by pair: CPU of the broker, and the reader's time."""

    cpu: list[float]
    seconds: list[float]


def kafka_compared(address: str) -> Iterator[Compared]:
    for messages, count in {0: 8000, **SIZES}.items():
        topic = f"read-{messages}"
        with KafkaClient(address) as client:
            client.create_topic(topic, 1)
            if messages:
                by_writers(partial(kafka_transactions, address, topic, messages), count)
            else:
                kafka_messages(address, topic, count)
            readings = (fetches(client, topic, committed=committed) for committed in (True, False))
            yield Compared(f"kafka, {titled(messages)}", *readings, Peer(address, length_prefixed))


def pulsar_compared(address: str) -> Iterator[Compared]:
    other = "read-pulsar-0"
    count_of_others = max(SIZES.values())
    pulsar_messages(address, other, count_of_others)
    for messages, count in SIZES.items():
        topic = f"read-pulsar-{messages}"
        by_writers(partial(pulsar_transactions, address, topic, messages), count)
        delivered = count * (ABORTS_OF - 1) // ABORTS_OF * messages
        peer = Peer(address, length_prefixed)
        connect = pb.CommandConnect(client_version="load", protocol_version=21)
        peer.exchange(encoded(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)), 1)
        yield Compared(
            f"pulsar, {titled(messages)}",
            pulsar_reading(topic, delivered),
            pulsar_reading(other, count_of_others),
            peer,
            count * messages,
        )


def titled(messages: int) -> str:
    return f"{messages} a transaction" if messages else "no transactions"


def by_writers(write: Callable[[int, int], None], count: int) -> None:
    """Have some write at a time, `count` transactions together."""
    with ThreadPoolExecutor(WRITERS) as threads:
        for written in [threads.submit(write, each, count // WRITERS) for each in range(WRITERS)]:
            written.result()


def kafka_transactions(address: str, topic: str, messages: int, writer: int, count: int) -> None:
    own = {"bootstrap.servers": address, "linger.ms": 50, "transactional.id": f"{topic}-{writer}"}
    producer = Producer(own)
    producer.init_transactions(ANSWER_SECONDS)
    for number in range(count):
        producer.begin_transaction()
        for _ in range(messages):
            producer.produce(topic, VALUE, partition=0)
        if number % ABORTS_OF:
            producer.commit_transaction(ANSWER_SECONDS)
        else:
            producer.flush(ANSWER_SECONDS)  # Else it is dropped, and there is nothing to abort.
            producer.abort_transaction(ANSWER_SECONDS)


def kafka_messages(address: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "batch.num.messages": 1})
    for _ in range(count):
        producer.produce(topic, VALUE, partition=0)
    producer.flush(ANSWER_SECONDS)


def fetches(client: KafkaClient, topic: str, *, committed: bool) -> Reading:
    """Return what reads all of a topic, which was read once then: the broker knows it for sound."""
    exchanges: list[Exchange] = []
    for _ in range(2):
        exchanges.clear()
        offset = 0
        while True:
            how = {"max_bytes": FETCH_BYTES, "max_wait_ms": 0, "min_bytes": 1}
            found = client.fetch(topic, 0, offset, committed=committed, **how).batches
            if not found:
                break
            request = asking(topic, 0, offset, committed=committed, **how)
            frame = encode_request(FETCH, FETCH_VERSION, 1, "load", request)
            exchanges.append(Exchange(b"".join(map(bytes, frame)), 1))
            *_, (_, last) = walk(found)
            offset = last.next_offset
    return Reading(exchanges, offset)


def pulsar_transactions(address: str, topic: str, messages: int, writer: int, count: int) -> None:
    with PulsarClient(address) as client:
        send = pulsar_sender(client, topic, f"{topic}-{writer}")
        coordinators = Coordinators(client)
        for number in range(count):
            most, least = transaction = coordinators.begin(ANSWER_SECONDS * 1000)
            coordinators.add(transaction, topic)
            send(messages, txnid_most_bits=most, txnid_least_bits=least)
            coordinators.end(transaction, committed=number % ABORTS_OF > 0)


def pulsar_messages(address: str, topic: str, count: int) -> None:
    with PulsarClient(address) as client:
        pulsar_sender(client, topic, topic)(count)


def pulsar_sender(client: PulsarClient, topic: str, name: str) -> Callable[..., None]:
    """Return what sends so many messages and returns when they are safe."""
    connection = client.owner(topic)
    producer = connection.next_id()
    made = pb.CommandProducer(topic=topic, producer_id=producer, request_id=0, producer_name=name)
    connection.ask(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=made))
    numbers = itertools.count()

    def send(count: int, **transaction: int) -> None:
        sent = [next(numbers) for _ in range(count)]
        for number in sent:
            metadata = MessageMetadata(producer_name=name, sequence_id=number, publish_time=1)
            entry = build_entry(metadata, VALUE)
            command = pb.CommandSend(producer_id=producer, sequence_id=number, **transaction)
            connection.send(pb.BaseCommand(type=pb.BaseCommand.SEND, send=command), entry)
        for number in sent:
            connection.receipt(producer, number)

    return send


def pulsar_reading(topic: str, messages: int) -> Reading:
    """Return what a consumer without a cursor does that takes all messages of a topic at once."""
    earliest = pb.MessageIdData(ledgerId=EARLIEST, entryId=EARLIEST)
    subscribe = pb.CommandSubscribe(
        topic=topic,
        subscription="load",
        subType=pb.CommandSubscribe.Exclusive,
        consumer_id=1,
        request_id=1,
        durable=False,
        start_message_id=earliest,
    )
    flow = pb.CommandFlow(consumer_id=1, messagePermits=messages)
    close = pb.CommandCloseConsumer(consumer_id=1, request_id=2)
    commands = (
        (pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe), 1),
        (pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=flow), messages),
        (pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=close), 1),
    )
    return Reading([Exchange(encoded(each), replies) for each, replies in commands], messages)


def encoded(command: pb.BaseCommand) -> bytes:
    return bytes(pulsar.encode_command(command))


def measured(broker: int, compared: Compared, pairs: int, seconds: float) -> Ratios:
    """Have both readings take turns, each for about so long."""
    began = time.perf_counter()
    read(compared, compared.other, 1)
    times = max(1, round(seconds / (time.perf_counter() - began)))
    ratios = Ratios([], [])
    for number in range(pairs):
        used: dict[bool, tuple[float, float]] = {}
        for committed in (number % 2 == 0, number % 2 > 0):
            reading = compared.committed if committed else compared.other
            before, began = cpu_seconds(broker), time.perf_counter()
            read(compared, reading, times)
            took = time.perf_counter() - began
            messages = reading.messages * times
            used[committed] = (cpu_seconds(broker) - before) / messages, took / messages
        ratios.cpu.append(used[True][0] / used[False][0])
        ratios.seconds.append(used[True][1] / used[False][1])
    return ratios


def said(compared: Compared, ratios: Ratios) -> Iterator[tuple[str, Ratios]]:
    """Yield what was found under the titles that it has."""
    yield compared.title, ratios
    if compared.written:
        share = compared.committed.messages / compared.written
        of_all = ([each * share for each in unit] for unit in ratios)
        yield f"{compared.title}, of all written", Ratios(*of_all)


def read(compared: Compared, reading: Reading, times: int) -> None:
    for _ in range(times):
        for each in reading.exchanges:
            compared.peer.exchange(*each)


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return in which range the median lies with 95 %, as drawing from the pairs again has it."""
    chance = random.Random(1)
    drawn = (statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(DRAWN))
    cuts = statistics.quantiles(drawn, n=40)
    return cuts[0], cuts[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.25, help="of each reading")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    numbers: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-read-") as name:
        folder = Path(name)
        with running_broker(folder) as addresses:
            broker = broker_in(folder)
            print(f"committed / all{'broker CPU':>49}{'time':>22}")
            for protocol, all_compared in COMPARED.items():
                for compared in all_compared(addresses[protocol]):
                    found = measured(broker, compared, arguments.pairs, arguments.seconds)
                    for title, ratios in said(compared, found):
                        print(f"{title:42}", end="")
                        for unit, each in ratios._asdict().items():
                            numbers[f"{title}, {unit}"] = median = statistics.median(each)
                            low, high = interval(each)
                            print(f"{median:10.3f} ({low:.3f}-{high:.3f})", end="")
                        print(flush=True)
    saved.compare("read-committed", numbers, save=arguments.save)


COMPARED: Final = {"kafka": kafka_compared, "pulsar": pulsar_compared}


if __name__ == "__main__":
    main()
