"""Two brokers of Pulsar's protocol that one real client asks the same, step by step.

A step is made once, of random choices, and asked of each twin; what it returns has nothing that a
broker may choose. A subscription has one consumer at a time, for the order of two is nobody's.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulsar

from side_by_side import Outcome, Step, Weights

TIMEOUT_SECONDS = 30
TOPICS, SUBSCRIPTIONS = "ab", ("s1", "s2")
KINDS = (pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover)
POSITIONS = (pulsar.InitialPosition.Earliest, pulsar.InitialPosition.Latest)
ENDS = {"earliest": pulsar.MessageId.earliest, "latest": pulsar.MessageId.latest}
FIRST_MS, NEXT_MS = 1_500, 400
"""How long the first message of several is waited for, and each of the others."""
SETTLED_SECONDS = 0.1
"""Until a broker has taken in what is not answered: acknowledgements, and who is gone."""
REDELIVERY_MS = 100


@dataclass
class Subscribed:
    """A consumer, and what it has and has not acknowledged, the oldest first."""

    consumer: pulsar.Consumer
    held: list[pulsar.Message] = field(default_factory=list)


class Twin:
    """A client of one of the two; `run` keeps the topics of one run from those of others."""

    def __init__(self, url: str, run: str) -> None:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self.client = pulsar.Client(url, logger=logger, operation_timeout_seconds=TIMEOUT_SECONDS)
        self.run = run
        self.producers: dict[tuple[str, bool], pulsar.Producer] = {}
        self.sent = dict.fromkeys(TOPICS, 0)
        self.consumers: dict[tuple[str, str], Subscribed] = {}

    def topic(self, name: str) -> str:
        return f"persistent://public/default/{self.run}-{name}"

    def do(self, step: Step[Twin]) -> Outcome:
        """Return what comes of a step; of a refusal, its kind."""
        try:
            return step(self)
        except pulsar.PulsarException as error:
            return type(error).__name__

    def close(self) -> None:
        self.client.close()


def received(source: Callable[[int], pulsar.Message]) -> list[pulsar.Message]:
    """Everything that comes until nothing does."""
    found: list[pulsar.Message] = []
    while True:
        try:
            found.append(source(NEXT_MS if found else FIRST_MS))
        except pulsar.Timeout:
            return found


def text(messages: list[pulsar.Message]) -> list[object]:
    return [(each.data(), each.partition_key(), each.event_timestamp()) for each in messages]


def send(chance: random.Random) -> Step[Twin]:
    topic, count, batched = (
        chance.choice(TOPICS),
        chance.choice([1, 1, 3, 10]),
        chance.random() < 0.5,
    )
    key = chance.choice([None, "k1", "k2"])

    def step(twin: Twin) -> Outcome:
        producer = twin.producers.get((topic, batched))
        if producer is None:
            producer = twin.client.create_producer(twin.topic(topic), batching_enabled=batched)
            twin.producers[topic, batched] = producer
        results: list[str] = []
        answered = threading.Semaphore(0)

        def known(result: Any, _: object) -> None:
            results.append(str(result))
            answered.release()

        for number in range(twin.sent[topic], twin.sent[topic] + count):
            content = f"{topic}{number}".encode()
            producer.send_async(content, known, partition_key=key, event_timestamp=number + 1)
        producer.flush()
        twin.sent[topic] += count
        for _ in range(count):
            assert answered.acquire(timeout=TIMEOUT_SECONDS)
        return results

    return step


def subscribe(chance: random.Random) -> Step[Twin]:
    place = chance.choice(TOPICS), chance.choice(SUBSCRIPTIONS)
    kind, position = chance.choice(KINDS), chance.choice(POSITIONS)

    def step(twin: Twin) -> Outcome:
        if place in twin.consumers:
            return None
        consumer = twin.client.subscribe(
            twin.topic(place[0]),
            place[1],
            kind,
            initial_position=position,
            negative_ack_redelivery_delay_ms=REDELIVERY_MS,
        )
        twin.consumers[place] = Subscribed(consumer)
        return "subscribed"

    return step


def of_consumer(act: Callable[[Subscribed, random.Random], Outcome]) -> Callable[..., Step[Twin]]:
    """A step of whoever is subscribed somewhere; its choices are the same for both twins."""

    def make(chance: random.Random) -> Step[Twin]:
        place, seed = (chance.choice(TOPICS), chance.choice(SUBSCRIPTIONS)), chance.getrandbits(64)

        def step(twin: Twin) -> Outcome:
            subscribed = twin.consumers.get(place)
            if subscribed is None:
                return None
            outcome = act(subscribed, random.Random(seed))
            if act in (close, unsubscribe):
                del twin.consumers[place]
            time.sleep(SETTLED_SECONDS)
            return outcome

        return step

    make.__name__ = act.__name__
    return make


def receive(subscribed: Subscribed, _: random.Random) -> Outcome:
    found = received(subscribed.consumer.receive)
    subscribed.held += found
    return text(found)


def acknowledge(subscribed: Subscribed, chance: random.Random) -> Outcome:
    message = taken(subscribed, chance)
    if message is not None:
        subscribed.consumer.acknowledge(message)
    return message and message.data()


def acknowledge_all(subscribed: Subscribed, _: random.Random) -> Outcome:
    for message in subscribed.held:
        subscribed.consumer.acknowledge(message)
    subscribed.held.clear()
    return None


def acknowledge_cumulatively(subscribed: Subscribed, chance: random.Random) -> Outcome:
    if not subscribed.held:
        return None
    message = chance.choice(subscribed.held)
    subscribed.consumer.acknowledge_cumulative(message)
    return message.data()


def give_back(subscribed: Subscribed, chance: random.Random) -> Outcome:
    message = taken(subscribed, chance)
    if message is not None:
        subscribed.consumer.negative_acknowledge(message)
        time.sleep(3 * REDELIVERY_MS / 1000)
    return message and message.data()


def redeliver(subscribed: Subscribed, _: random.Random) -> Outcome:
    # What is on its way then comes twice or once, as the client's clock has it.
    found = received(subscribed.consumer.receive)
    subscribed.held.clear()
    subscribed.consumer.redeliver_unacknowledged_messages()
    return text(found)


def seek(subscribed: Subscribed, chance: random.Random) -> Outcome:
    to = chance.choice([*ENDS, "held"])
    held = chance.choice(subscribed.held) if subscribed.held else None
    if to == "held" and held is None:
        return None
    subscribed.consumer.seek(ENDS[to] if to in ENDS else held.message_id())
    subscribed.held.clear()
    return to


def last_id(subscribed: Subscribed, _: random.Random) -> Outcome:
    found = subscribed.consumer.get_last_message_id()
    return found.batch_index(), found.ledger_id() >= 0


def close(subscribed: Subscribed, _: random.Random) -> Outcome:
    subscribed.consumer.close()
    return None


def unsubscribe(subscribed: Subscribed, _: random.Random) -> Outcome:
    subscribed.consumer.unsubscribe()
    return None


def taken(subscribed: Subscribed, chance: random.Random) -> pulsar.Message | None:
    """One message that was received, which it no longer has."""
    if not subscribed.held:
        return None
    return subscribed.held.pop(chance.randrange(len(subscribed.held)))


def read(chance: random.Random) -> Step[Twin]:
    topic, start = chance.choice(TOPICS), chance.choice([*ENDS])

    def step(twin: Twin) -> Outcome:
        reader = twin.client.create_reader(twin.topic(topic), ENDS[start])
        found = received(reader.read_next) if reader.has_message_available() else []
        reader.close()
        return text(found)

    return step


WEIGHTS: Weights[Twin] = {
    send: 8,
    subscribe: 6,
    of_consumer(receive): 9,
    of_consumer(acknowledge): 5,
    of_consumer(acknowledge_all): 3,
    of_consumer(acknowledge_cumulatively): 3,
    of_consumer(give_back): 3,
    of_consumer(redeliver): 2,
    of_consumer(seek): 3,
    of_consumer(last_id): 1,
    of_consumer(close): 3,
    of_consumer(unsubscribe): 1,
    read: 1,
}
