"""Goal: no request of Kafka's holds the event loop for long, however many elements it has.

Method: of each API that is served and each array in its request, a request with as many elements in
that array as any may have, or as are enough to tell. They are made from the schemas, so that none
is forgotten that is served one day.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import stretches
from kafka_arrays import Many, all_arrays
from kafka_dialog import TOPIC, Dialog, kafka_broker
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.kafka.wire import api
from penstock.kafka.wire.schema import Field, StructType

TRIES = 20
ELEMENTS, BAR_SECONDS = 20_000, 0.010
"""Enough to tell what is carried out in one go: a step is a millisecond, and so much noise."""
GROUPS = 10_000
ELEMENTS_MAX, BAR_SECONDS_MAX = 99_000, 0.010

VALUES: dict[str, object] = {
    "name": TOPIC,
    "topic": TOPIC,
    "resource_name": TOPIC,
    "resource_type": 2,
    "group_id": "group",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "generation_id_or_member_epoch": -1,
    "max_bytes": 1 << 20,
    "min_bytes": 1,
    "acks": 1,
    "timestamp": -1,
    "validate_only": True,
}
"""What makes requests ones that are carried out, by the fields' names."""
NAMES = {"name", "topic", "resource_name", "group_id", "member_id"}


def element(types: Any, field: Field, number: int, are_new: bool) -> object:
    if field.struct is None:
        if field.type == "string":
            return f"n{number}" if are_new else TOPIC
        return bytes(16) if field.type == "bytes" else 0
    made = struct(types, field.struct)
    if are_new:
        for each in field.struct.fields:
            if each.name in NAMES:
                setattr(made, each.name, f"n{number}")
    return made


def struct(types: Any, kind: StructType) -> Any:
    values = {field.name: VALUES[field.name] for field in kind.fields if field.name in VALUES}
    return getattr(types, kind.name)(**values)


def request(many: Many, elements_max: int) -> Any:
    types = api(many.name).request
    root = made = struct(types, types.root)
    *outer, last = many.path
    for field in outer:
        inner = struct(types, field.struct)
        setattr(made, field.name, [inner] if field.is_array else inner)
        made = inner
    count = elements_max - len(outer)
    if many.are_new:
        elements = [element(types, last, number, are_new=True) for number in range(count)]
    else:
        elements = [element(types, last, 0, are_new=False)] * count
    setattr(made, last.name, elements)
    return root


async def best(asker: stretches.Asker, frame: memoryview, bar: float) -> float:
    found: list[float] = []
    while len(found) < TRIES and min(found, default=bar) >= bar:
        found.append(await asker.stretch(frame))
    return min(found)


async def longest(folder: Path, many: Many, elements: int, bar: float) -> float:
    """Return the seconds of the longest stretch, in the best of some tries."""
    async with kafka_broker(folder) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        frame = dialog.frame(many.name, many.version, request(many, elements))
        return await best(stretches.Asker(dialog.session), frame, bar)


@pytest.mark.parametrize("many", [each for each in all_arrays() if not each.are_new], ids=str)
def test_no_request_holds_the_loop(tmp_path: Path, many: Many) -> None:
    found = stretches.run(partial(longest, tmp_path, many, ELEMENTS, BAR_SECONDS), collects=False)
    assert found < BAR_SECONDS


async def longest_of_groups(folder: Path) -> float:
    async with kafka_broker(folder) as broker:
        dialog = Dialog(broker)
        for number in range(GROUPS):
            owner = OffsetOwner("kafka", f"group-{number}")
            broker.offsets._put(owner, {1: CommittedOffset(1)})
        frame = dialog.frame("ListGroups", 5, api("ListGroups").request())
        return await best(stretches.Asker(dialog.session), frame, BAR_SECONDS)


def test_no_list_of_many_groups_holds_the_loop(tmp_path: Path) -> None:
    found = stretches.run(partial(longest_of_groups, tmp_path), collects=False)
    assert found < BAR_SECONDS


@pytest.mark.soak
@pytest.mark.parametrize("many", list(all_arrays()), ids=str)
def test_no_request_with_all_the_elements_that_there_may_be(tmp_path: Path, many: Many) -> None:
    work = partial(longest, tmp_path, many, ELEMENTS_MAX, BAR_SECONDS_MAX)
    found = stretches.run(work, collects=True)
    assert found < BAR_SECONDS_MAX
