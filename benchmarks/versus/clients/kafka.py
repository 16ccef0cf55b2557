"""librdkafka, through confluent-kafka."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from versus.clients.client import DEADLINE_SECONDS, STAMP, Begin, Client, LoadError
from versus.order import Done
from versus.schedule import Schedule, follow

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK: Final = 1000
PARTITIONS_A_TOPIC: Final = 100
TRANSACTION_PARTITIONS: Final = 4
QUIET: Final = {"delivery.report.only.error": True}
"""Reports of success would cost the client a call per message."""
TUNED: Final = QUIET | {
    "linger.ms": 50,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
}
TUNED_FETCH: Final = {
    "fetch.message.max.bytes": 8 << 20,
    "queued.max.messages.kbytes": 256 << 10,
    # By default, the client rests for a second each time it has 100,000 messages.
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 1,
}
UNBATCHED: Final = {"linger.ms": 0, "batch.num.messages": 1, "socket.nagle.disable": True}


class KafkaClient(Client):
    def first(self) -> None:
        producer = self._producer({"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20})
        producer.produce(self.order.topic, self.value)
        self._flush(producer)

    def produce(self, begin: Begin) -> Done:
        self._create(self.order.topic, 1)
        producer = self._producer(TUNED if self.order.tuned else QUIET)
        producer.list_topics(self.order.topic, DEADLINE_SECONDS)
        return self._flood(producer, [self.order.topic], 1, begin)

    def consume(self, begin: Begin) -> Done:
        consumer = self._consumer(TUNED_FETCH if self.order.tuned else {})
        consumer.list_topics(self.order.topic, DEADLINE_SECONDS)
        left = self.order.count
        began = begin()
        deadline = began + DEADLINE_SECONDS
        consumer.assign([TopicPartition(self.order.topic, 0, OFFSET_BEGINNING)])
        while left:
            for message in consumer.consume(min(5 * CHUNK, left), 0.2):
                if message.error():
                    raise LoadError(str(message.error()))
                left -= 1
            if time.perf_counter() > deadline:
                raise LoadError(f"{left} of {self.order.count} messages did not arrive")
        return Done(self.order.count, time.perf_counter() - began)

    def requests(self, begin: Begin) -> Done:
        self._create(self.order.topic, 1)
        producer = self._producer(UNBATCHED)
        answered = 0

        def delivered(error: Any, _message: Any) -> None:
            nonlocal answered
            _check(error)
            answered += 1

        producer.list_topics(self.order.topic, DEADLINE_SECONDS)
        sent = 0
        began = begin()
        while time.perf_counter() < began + self.order.seconds:
            while sent - answered < self.order.window:
                producer.produce(self.order.topic, self.value, partition=0, on_delivery=delivered)
                sent += 1
            producer.poll(1)
        self._flush(producer)
        return Done(answered, time.perf_counter() - began)

    def publish(self, begin: Begin) -> Done:
        self._create(self.order.topic, 1)
        producer = self._producer(UNBATCHED)
        self._settle(producer)
        began = begin()
        schedule = Schedule(time.perf_counter_ns(), self.order.rate, self.order.seconds)
        latencies = [0] * schedule.count

        def send(number: int, due: int) -> None:
            def delivered(error: Any, _message: Any) -> None:
                _check(error)
                latencies[number] = time.perf_counter_ns() - due

            producer.produce(self.order.topic, self.value, partition=0, on_delivery=delivered)

        with _served(producer):
            follow(schedule, send)
            self._flush(producer)
        seconds = time.perf_counter() - began
        return Done(schedule.count, seconds, schedule.settled(latencies))

    def end_to_end(self, begin: Begin) -> Done:
        self._create(self.order.topic, 1)
        producer = self._producer({"linger.ms": 0, "socket.nagle.disable": True})
        self._settle(producer)
        consumer = self._consumer({"fetch.wait.max.ms": 500, "socket.nagle.disable": True})
        consumer.assign([TopicPartition(self.order.topic, 0, OFFSET_BEGINNING)])
        if consumer.poll(DEADLINE_SECONDS) is None:
            raise LoadError("the first message did not arrive")
        began = begin()
        schedule = Schedule(time.perf_counter_ns(), self.order.rate, self.order.seconds)
        latencies: list[int] = []
        reader = threading.Thread(target=_receive, args=(consumer, schedule.count, latencies))
        reader.start()
        with _served(producer):
            follow(
                schedule,
                lambda _, due: producer.produce(self.order.topic, self.stamped(due), partition=0),
            )
            self._flush(producer)
            reader.join()
        if len(latencies) != schedule.count:
            raise LoadError(f"{schedule.count - len(latencies)} messages did not arrive")
        seconds = time.perf_counter() - began
        return Done(schedule.count, seconds, schedule.settled(latencies))

    def many(self, begin: Begin) -> Done:
        topics = max(1, self.order.partitions // PARTITIONS_A_TOPIC)
        names = [f"{self.order.topic}-{number}" for number in range(topics)]
        each = min(PARTITIONS_A_TOPIC, self.order.partitions)
        creation = time.perf_counter()
        for name in names:
            self._create(name, each)
        creation = time.perf_counter() - creation
        producer = self._producer(QUIET)
        for name in names:
            producer.list_topics(name, DEADLINE_SECONDS)
        done = self._flood(producer, names, each, begin)
        done.extra["creation_seconds"] = creation
        return done

    def transactions(self, begin: Begin) -> Done:
        self._create(self.order.topic, TRANSACTION_PARTITIONS)
        producer = self._producer(QUIET | {"linger.ms": 0, "transactional.id": self.order.topic})
        producer.init_transactions(DEADLINE_SECONDS)
        # The broker's own topics are made and its code is compiled before it counts.
        self._commit_for(producer, self.order.seconds / 2)
        began = begin()
        latencies = self._commit_for(producer, self.order.seconds)
        seconds = time.perf_counter() - began
        return Done(len(latencies) * self.order.transaction, seconds, latencies)

    def _commit_for(self, producer: Producer, seconds: float) -> list[int]:
        """Commit transactions for so long; return how long each took, in ns."""
        latencies: list[int] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter_ns()
            producer.begin_transaction()
            for number in range(self.order.transaction):
                partition = number % TRANSACTION_PARTITIONS
                producer.produce(self.order.topic, self.value, partition=partition)
            producer.commit_transaction(DEADLINE_SECONDS)
            latencies.append(time.perf_counter_ns() - began)
        return latencies

    def _flood(self, producer: Producer, topics: list[str], partitions: int, begin: Begin) -> Done:
        chunk = [{"value": self.value, "partition": n % partitions} for n in range(CHUNK)]
        began = begin()
        end = began + self.order.seconds
        sent = 0
        number = 0
        while sent < self.order.count_max and time.perf_counter() < end:
            taken = producer.produce_batch(topics[number % len(topics)], chunk)
            sent += taken
            number += 1
            # A full queue refuses the rest of a chunk; without polling nothing would leave it.
            producer.poll(0 if taken == CHUNK else 0.001)
        self._flush(producer)
        return Done(sent, time.perf_counter() - began)

    def _settle(self, producer: Producer) -> None:
        producer.produce(self.order.topic, self.value, partition=0)
        self._flush(producer)

    def _flush(self, producer: Producer) -> None:
        left = producer.flush(DEADLINE_SECONDS)
        if left:
            raise LoadError(f"{left} messages were not acknowledged")

    def _producer(self, settings: dict[str, Any]) -> Producer:
        fixed: dict[str, Any] = {
            "bootstrap.servers": self.order.address,
            "acks": "all",
            "on_delivery": lambda error, _: _check(error),
        }
        return Producer(fixed | settings)

    def _consumer(self, settings: dict[str, Any]) -> Consumer:
        fixed = {
            "bootstrap.servers": self.order.address,
            "group.id": "versus",
            "enable.auto.commit": False,
        }
        return Consumer(fixed | settings)

    def _create(self, topic: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.order.address})
        future = admin.create_topics(
            [NewTopic(topic, partitions, 1, config=self.order.topic_options)],
            operation_timeout=DEADLINE_SECONDS,
        )[topic]
        with suppress(KafkaException):  # it is there already
            future.result()


def _check(error: Any) -> None:
    if error:
        raise LoadError(str(error))


def _receive(consumer: Consumer, count: int, latencies: list[int]) -> None:
    deadline = time.perf_counter() + DEADLINE_SECONDS
    while len(latencies) < count and time.perf_counter() < deadline:
        message = consumer.poll(0.2)
        value = message.value() if message is not None else None
        if value is not None:
            (due,) = STAMP.unpack_from(value)
            latencies.append(time.perf_counter_ns() - due)


@contextmanager
def _served(producer: Producer) -> Iterator[None]:
    """Take delivery reports the moment they come, in a thread of their own."""
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            producer.poll(0.05)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
