"""Two brokers of Pulsar's protocol that one real client asks the same, step by step.

A step is made once, of random choices, and asked of each twin; what it returns has nothing that a
broker may choose. So most subscriptions have one consumer at a time, for the order of two is
nobody's. A Key_Shared one has several: whose a key is follows from their names or ranges, and of
what they receive the order of each key is compared.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pulsar

from side_by_side import Outcome, Step, Weights

TIMEOUT_SECONDS = 30
TOPICS = "ab"
KEYS = [f"k{number}" for number in range(6)]
KINDS = (pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover)
POSITIONS = (pulsar.InitialPosition.Earliest, pulsar.InitialPosition.Latest)
ENDS = {"earliest": pulsar.MessageId.earliest, "latest": pulsar.MessageId.latest}
FIRST_MS, NEXT_MS = 1_500, 400
"""How long the first message of several is waited for, and each of the others."""
SETTLED_SECONDS = 0.1
"""Until a broker has taken in what is not answered: acknowledgements, and who is gone."""
REDELIVERY_MS = 100
DELAY_SECONDS, EARLY_SECONDS, DUE_SECONDS = 3.0, 0.7, 5.0
"""How long messages wait, and when nobody has them yet and all do: Apache Pulsar is up to a second
early, or late."""
NEVER_SECONDS = 86_400.0
"""So late that it is not in this run."""
AT_HAND_MS = 50


class Place(NamedTuple):
    """Where a consumer may be."""

    topic: str
    subscription: str
    consumer: str

    @property
    def is_keyed(self) -> bool:
        return self.subscription in KEYED


KEYED = ("keyed", "ranged")
"""Key_Shared ones: keys go by the consumers' names, or by ranges that they ask for."""
NAMES = ("c1", "c2", "c3")
RANGES = ([(0, 32_767)], [(32_768, 65_535)], [(0, 9_999), (50_000, 65_535)], [(10_000, 49_999)])
PLACES = [
    *(Place(topic, name, "") for topic in TOPICS for name in ("s1", "s2") for _ in NAMES),
    *(Place(topic, name, each) for topic in TOPICS for name in KEYED for each in NAMES),
]


@dataclass
class Subscribed:
    """A consumer, and what it has and has not acknowledged, the oldest first."""

    consumer: pulsar.Consumer
    is_keyed: bool
    held: list[pulsar.Message] = field(default_factory=list)

    def take(self, first_ms: int = FIRST_MS, next_ms: int = NEXT_MS) -> list[pulsar.Message]:
        """Hold and return what comes: in its order, where there are many keys in that of each."""
        found = received(self.consumer.receive, first_ms, next_ms)
        if self.is_keyed:
            found.sort(key=key_of)
        self.held += found
        return found


def key_of(message: pulsar.Message) -> tuple[str, int]:
    """Messages without a key are each one of its own."""
    key = message.partition_key()
    return key, 0 if key else message.event_timestamp()


class Twin:
    """A client of one of the two; `run` keeps the topics of one run from those of others."""

    def __init__(self, url: str, run: str) -> None:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self.client = pulsar.Client(url, logger=logger, operation_timeout_seconds=TIMEOUT_SECONDS)
        self.run = run
        self.producers: dict[tuple[str, bool], pulsar.Producer] = {}
        self.sent = dict.fromkeys(TOPICS, 0)
        self.consumers: dict[Place, Subscribed] = {}

    def topic(self, name: str) -> str:
        return f"persistent://public/default/{self.run}-{name}"

    def do(self, step: Step[Twin]) -> Outcome:
        """Return what comes of a step; of a refusal, its kind."""
        try:
            return step(self)
        except pulsar.PulsarException as error:
            return type(error).__name__
        finally:
            time.sleep(SETTLED_SECONDS)

    def producer(self, topic: str, *, batched: bool) -> pulsar.Producer:
        found = self.producers.get((topic, batched))
        if found is None:
            # Whose a message without a key is follows from its producer's name.
            found = self.client.create_producer(
                self.topic(topic),
                f"{topic}-{batched}",
                batching_enabled=batched,
                batching_max_publish_delay_ms=TIMEOUT_SECONDS * 1000,
            )
            self.producers[topic, batched] = found
        return found

    def beside(self, place: Place) -> list[Place]:
        """The places of all consumers of a subscription."""
        return [each for each in self.consumers if each[:2] == place[:2]]

    def close(self) -> None:
        self.client.close()


def received(
    source: Callable[[int], pulsar.Message], first_ms: int = FIRST_MS, next_ms: int = NEXT_MS
) -> list[pulsar.Message]:
    """Everything that comes until nothing does."""
    found: list[pulsar.Message] = []
    while True:
        try:
            found.append(source(next_ms if found else first_ms))
        except pulsar.Timeout:
            return found


def text(messages: list[pulsar.Message]) -> list[object]:
    return [
        (each.data(), each.partition_key(), each.event_timestamp(), each.redelivery_count())
        for each in messages
    ]


def send(chance: random.Random) -> Step[Twin]:
    topic, count, batched = (
        chance.choice(TOPICS),
        chance.choice([1, 1, 3, 10]),
        chance.random() < 0.5,
    )
    key = chance.choice([None, *KEYS])
    delay = NEVER_SECONDS if chance.random() < 0.1 else None

    def step(twin: Twin) -> Outcome:
        return sent(twin, topic, count, batched=batched, key=key, delay=delay)

    return step


def sent(
    twin: Twin, topic: str, count: int, *, batched: bool, key: str | None, delay: float | None
) -> list[str]:
    """Send so many messages of one key and return what becomes of each."""
    producer = twin.producer(topic, batched=batched)
    results: list[str] = []
    answered = threading.Semaphore(0)

    def known(result: Any, _: object) -> None:
        results.append(str(result))
        answered.release()

    due = None if delay is None else int((time.time() + delay) * 1000)
    for number in range(twin.sent[topic], twin.sent[topic] + count):
        content = f"{topic}{number}".encode()
        producer.send_async(
            content, known, partition_key=key, event_timestamp=number + 1, deliver_at=due
        )
    producer.flush()
    twin.sent[topic] += count
    for _ in range(count):
        assert answered.acquire(timeout=TIMEOUT_SECONDS)
    return results


def send_later(chance: random.Random) -> Step[Twin]:
    """Messages that wait, and what consumers have before they are due, and when they are."""
    topic, count, key = chance.choice(TOPICS), chance.choice([1, 3]), chance.choice(KEYS)

    def step(twin: Twin) -> Outcome:
        gathered(twin, topic, FIRST_MS / 1000)
        begun = time.monotonic()
        results = sent(twin, topic, count, batched=False, key=key, delay=DELAY_SECONDS)
        at_once = gathered(twin, topic, EARLY_SECONDS)
        when_due = gathered(twin, topic, begun + DUE_SECONDS - time.monotonic())
        return results, at_once, when_due

    return step


def gathered(twin: Twin, topic: str, seconds: float) -> Outcome:
    """Wait, and have all of a topic's consumers take what has come to them meanwhile."""
    time.sleep(max(seconds, 0.0))
    outcome = []
    for place, subscribed in twin.consumers.items():
        if place.topic == topic:
            outcome.append((place, text(subscribed.take(AT_HAND_MS, AT_HAND_MS))))
    return outcome


def subscribe(chance: random.Random) -> Step[Twin]:
    place = chance.choice(PLACES)
    kind, position = chance.choice(KINDS), chance.choice(POSITIONS)
    ranges, out_of_order = chance.choice(RANGES), chance.random() < 0.1

    def step(twin: Twin) -> Outcome:
        if place in twin.consumers:
            return None
        consumer = twin.client.subscribe(
            twin.topic(place.topic),
            place.subscription,
            pulsar.ConsumerType.KeyShared if place.is_keyed else kind,
            consumer_name=place.consumer or None,
            initial_position=position,
            negative_ack_redelivery_delay_ms=REDELIVERY_MS,
            key_shared_policy=policy(place, ranges, out_of_order=out_of_order),
        )
        twin.consumers[place] = Subscribed(consumer, place.is_keyed)
        return "subscribed"

    return step


def policy(
    place: Place, ranges: list[tuple[int, int]], *, out_of_order: bool
) -> pulsar.ConsumerKeySharedPolicy | None:
    """Most go together with the others there, and some don't."""
    if place.subscription == "keyed":
        return pulsar.ConsumerKeySharedPolicy(pulsar.KeySharedMode.AutoSplit, out_of_order)
    if place.subscription == "ranged":
        return pulsar.ConsumerKeySharedPolicy(pulsar.KeySharedMode.Sticky, out_of_order, ranges)
    return None


def of_consumer(act: Callable[[Subscribed, random.Random], Outcome]) -> Callable[..., Step[Twin]]:
    """A step of one of those who are subscribed, with the same choices for both twins."""

    def make(chance: random.Random) -> Step[Twin]:
        seed = chance.getrandbits(64)

        def step(twin: Twin) -> Outcome:
            chosen = random.Random(seed)
            if not twin.consumers:
                return None
            place = chosen.choice([*twin.consumers])
            # Several that come back at once are given what the first of them can have.
            if act is seek and len(twin.beside(place)) > 1:
                return None
            outcome = act(twin.consumers[place], chosen)
            if act in (close, unsubscribe):
                del twin.consumers[place]
            return place, outcome

        return step

    make.__name__ = act.__name__
    return make


def receive(subscribed: Subscribed, _: random.Random) -> Outcome:
    return text(subscribed.take())


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
    found = subscribed.take()
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
    send_later: 1,
    subscribe: 8,
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
