"""What twins of Iggy are asked in the dialect of 0.8, of random choices; see iggy_twin_steps.

A send has one message: a poll that begins within several leaves some out there, or ends the server.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import iggy_twin_steps as today
from iggy_twins import Twin
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.dialect_l import CreateTopic, TopicSettings, UpdateTopic
from penstock.iggy.wire.identifiers import Identifier
from side_by_side import Outcome, Step, Weights

FOREVER = 2**64 - 1
SEGMENT = 1 << 30
COMPRESSIONS_KNOWN = (1, 2)
COMPRESSIONS = (1, *COMPRESSIONS_KNOWN, 0, 3)
EXPIRIES = (0, 1_000_000_000, FOREVER)
SIZES = (0, 1, 2 * SEGMENT, FOREVER)


def _settings(
    chance: random.Random, expiries: Sequence[int], sizes: Sequence[int]
) -> TopicSettings:
    expiry, size = chance.choice(expiries), chance.choice(sizes)
    return TopicSettings(chance.choice(COMPRESSIONS), expiry, size, 1)


def create_topic(chance: random.Random) -> Step[Twin]:
    name, settings = chance.choice(today.NAMES[:3]), _settings(chance, EXPIRIES, SIZES)
    # One mistake at a time: which one of two is told differs.
    partitions = chance.choice([0, 1, 3, *[1001] * (settings.compression in COMPRESSIONS_KNOWN)])

    def step(twin: Twin) -> Outcome:
        request = CreateTopic(twin.stream, partitions, settings, name)
        return twin.ask(Command.CREATE_TOPIC, request)

    return step


def update_topic(chance: random.Random) -> Step[Twin]:
    topic, name = today.any_topic(chance), chance.choice(today.NAMES[:2])
    # A size that is less than a segment's is taken there, and 0 is shown as it was said.
    settings = _settings(chance, EXPIRIES[1:], SIZES[2:])

    def step(twin: Twin) -> Outcome:
        return twin.ask(Command.UPDATE_TOPIC, UpdateTopic(twin.stream, topic, settings, name))

    return step


def delete_topic(chance: random.Random) -> Step[Twin]:
    # Not two, so that it does not matter which of their numbers the next one gets.
    topic = Identifier(chance.choice(["later", "missing"]))
    return lambda twin: today.delete(twin, topic)


def send(chance: random.Random) -> Step[Twin]:
    topic, to, payloads = today.to_send(chance)

    def step(twin: Twin) -> Outcome:
        place = requests.TopicRequest(twin.stream, topic)
        found = twin.ask(Command.GET_TOPIC, place)
        if isinstance(found, dict) and not found["topic"]["partitions_count"]:
            return "nothing"  # That ends the original, where the broker chooses the partition.
        return twin.send(twin.stream, topic, to, payloads[:1])

    return step


WEIGHTS: Weights[Twin] = {
    **today.OF_BOTH,
    send: 14,
    create_topic: 3,
    update_topic: 2,
    delete_topic: 1,
}
