"""What twins of Iggy are asked in the dialect of 0.8, of random choices; see iggy_twin_steps."""

from __future__ import annotations

import random

import iggy_twin_steps as today
from iggy_twins import Twin
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.dialect_l import CreateTopic, TopicSettings, UpdateTopic
from side_by_side import Outcome, Step, Weights

FOREVER = 2**64 - 1
SEGMENT = 1 << 30
COMPRESSIONS = (1, 1, 2, 0, 3)
EXPIRIES = (0, 1_000_000_000, FOREVER)
SIZES = (0, 1, 2 * SEGMENT, FOREVER)


def _settings(chance: random.Random, sizes: tuple[int, ...] = SIZES) -> TopicSettings:
    expiry, size = chance.choice(EXPIRIES), chance.choice(sizes)
    return TopicSettings(chance.choice(COMPRESSIONS), expiry, size, 1)


def create_topic(chance: random.Random) -> Step[Twin]:
    name, settings = chance.choice(today.NAMES[:3]), _settings(chance)
    partitions = chance.choice([0, 1, 3, 1001])

    def step(twin: Twin) -> Outcome:
        request = CreateTopic(twin.stream, partitions, settings, name)
        return twin.ask(Command.CREATE_TOPIC, request)

    return step


def update_topic(chance: random.Random) -> Step[Twin]:
    topic, name = today.any_topic(chance), chance.choice(today.NAMES[:3])
    # A size that is less than a segment's is taken there, which docs/iggy.md says.
    settings = _settings(chance, (0, 2 * SEGMENT, FOREVER))

    def step(twin: Twin) -> Outcome:
        return twin.ask(Command.UPDATE_TOPIC, UpdateTopic(twin.stream, topic, settings, name))

    return step


WEIGHTS: Weights[Twin] = {
    **today.OF_BOTH,
    create_topic: 3,
    update_topic: 2,
    today.flush: 1,
}
